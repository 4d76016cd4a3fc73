"""Summarizes a run in figures."""

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from typing import Any

from infra.simulation.audit.books import Violation, moved, takings
from infra.simulation.audit.evidence import Audit
from infra.simulation.audit.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Latency:
    count: int
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Summary:
    visits: dict[str, int]
    carts: int
    checkouts: int
    orders: dict[str, int]
    """Number of orders by status; cancelled ones by reason."""
    money: dict[str, dict[str, int]]
    """Sums by currency, in minor units: confirmed orders, and what the provider captured and refunded."""
    requests: dict[str, Latency]
    decided: Latency | None
    """Milliseconds from checkout to a decided order, as waiting shoppers saw it."""
    problems: dict[str, int]
    violations: list[Violation]

    def document(self) -> dict[str, Any]:
        return asdict(self) | {"violations": [str(violation) for violation in self.violations]}


def summarize(ledger: Ledger, audit: Audit) -> Summary:
    evidence = audit.evidence
    by_call: dict[str, list[float]] = defaultdict(list)
    for answer in ledger.answers:
        by_call[answer.call].append(answer.ms)
    confirmed = takings(evidence.orders)
    captured, refunded = moved(evidence.movements, "captured"), moved(evidence.movements, "refunded")
    return Summary(
        visits=dict(ledger.visits.most_common()),
        carts=ledger.tally["POST /v1/carts"],
        checkouts=len({checkout.order_id for checkout in ledger.checkouts}),
        orders=dict(Counter(": ".join(filter(None, (o.status, o.reason))) for o in evidence.orders).most_common()),
        money={
            currency: {
                "confirmed": confirmed.get(currency, 0),
                "captured": captured.get(currency, 0),
                "refunded": refunded.get(currency, 0),
            }
            for currency in sorted(confirmed.keys() | captured.keys() | refunded.keys())
        },
        requests={call: latency(times) for call, times in sorted(by_call.items())},
        decided=latency([it.ms for it in ledger.decided.values()]) if ledger.decided else None,
        problems=dict(Counter(f"{it.status} {it.problem}" for it in ledger.answers if it.problem).most_common()),
        violations=audit.violations,
    )


def latency(times: list[float]) -> Latency:
    """Computes the latency of at least one request."""
    ranked = sorted(times)
    last = len(ranked) - 1
    return Latency(len(ranked), ranked[round(last * 0.5)], ranked[round(last * 0.99)])
