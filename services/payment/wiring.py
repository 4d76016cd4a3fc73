"""The payment service, put together."""

from services.payment import decider
from services.payment.api import STATUSES, router
from services.payment.commands import Command
from services.payment.events import (
    AuthorizationRequested,
    CaptureRequested,
    Event,
    RefundRequested,
    VoidRequested,
)
from services.payment.feed import FOLLOWED, VelocityFeed
from services.payment.provider import Errands, Provider
from services.payment.reactions import react
from services.payment.risk import Rules
from shared.consumer import Incoming
from shared.decider import Deadlines, Decider
from shared.envelope import millis, now
from shared.service import Reaction, Service
from shared.settings import Settings

AT_ONCE = 0
ASKS_THE_PROVIDER = (AuthorizationRequested, CaptureRequested, VoidRequested, RefundRequested)


def payment(settings: Settings) -> Service:
    feed = VelocityFeed(Rules())

    def reaction(message: Incoming) -> list[tuple[str, Command]]:
        return react(message.type, message.data, message.stream_id, millis(now()), feed.judge)

    return Service(
        name="payment",
        decider=Decider(
            category="payment",
            topic="payment.events",
            initial=decider.initial,
            decide=decider.decide,
            evolve=decider.evolve,
            deadlines=_whenever_the_provider_is_wanted(),
        ),
        router=router,
        statuses=STATUSES,
        reactions=[Reaction("orders", ["order.events"], reaction, once=feed.caught_up)],
        look_at=lambda runtime: Errands(runtime, Provider(settings)).look_at,
        beside_worker=lambda runtime: [feed.follow(runtime.memory, settings)],
        follows=FOLLOWED,
    )


def _whenever_the_provider_is_wanted() -> Deadlines[decider.Payment, Command, Event]:
    def due(event: Event) -> int | None:
        return AT_ONCE if isinstance(event, ASKS_THE_PROVIDER) else None

    def no_command(_now: int) -> Command:
        raise AssertionError("a payment's moment is met by Errands")

    return Deadlines(due=due, command=no_command, next=lambda _: None)
