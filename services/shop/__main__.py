"""Runs every service in one process, the local default: `python -m services.shop [all|api|worker]`."""

from services.shop import sessions, timeline
from services.shop.services import shop_services
from services.shop.settings import ShopSettings
from shared.process import main

main(
    "Till Roll: the shop",
    ShopSettings,
    shop_services,
    address=lambda settings: (settings.shop_host, settings.shop_port),
    routers=lambda settings, runtimes: [sessions.router(settings), timeline.router(runtimes)],
)
