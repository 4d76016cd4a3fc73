"""The checks of `till verify` are listed in three places, because two of them must not import the checks."""

from infra.settings import Settings
from services.operations.verify.all_checks import SERVICE_CHECKS, SHOP_CHECKS
from services.operations.verify.processes import LONGEST_FIRST
from services.operations.verify.verify import CheckJob, list_jobs
from services.shop.services import shop_services

SERVICES = shop_services(Settings.load())


def test_every_check_runs_for_every_service_or_once_for_the_shop() -> None:
    expected = [CheckJob(check, service.name) for check in SERVICE_CHECKS for service in SERVICES]
    expected += [CheckJob(check) for check in SHOP_CHECKS]
    assert sorted(map(str, list_jobs(SERVICES))) == sorted(map(str, expected))


def test_every_check_has_its_place_in_the_order_of_starting() -> None:
    assert sorted(LONGEST_FIRST) == sorted({job.check for job in list_jobs(SERVICES)})
