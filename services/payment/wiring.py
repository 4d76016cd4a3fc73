"""Declares the payment service: its rules, its reactions, and its errands to the payment provider."""

from services.payment import decider
from services.payment.api import REFUSAL_STATUSES, router
from services.payment.commands import Command
from services.payment.feed import FOLLOWED, VelocityFeed
from services.payment.provider import open_provider
from services.payment.reactions import react
from services.payment.risk import Rules
from services.payment.settings import PaymentSettings
from shared.decider import Decider
from shared.messaging.incoming import Incoming
from shared.messaging.reactions import Reaction
from shared.scheduling.errands import Errands
from shared.service import Background, Service


def payment(settings: PaymentSettings) -> Service:
    feed = VelocityFeed(Rules())

    def react_to_order(message: Incoming, at: int) -> list[tuple[str, Command]]:
        return react(message, at, feed.assess)

    return Service(
        name="payment",
        decider=Decider.of(decider, "payment", "payment.events"),
        router=router,
        statuses=REFUSAL_STATUSES,
        reactions=[Reaction("orders", ["order.events"], react_to_order, ready=feed.caught_up)],
        errands=Errands(wanted=decider.next_operation, open=lambda: open_provider(settings)),
        background=[Background("worker", lambda runtime: feed.follow(runtime.decoder, settings))],
        follows=FOLLOWED,
    )
