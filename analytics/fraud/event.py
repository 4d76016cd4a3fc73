"""An alert as it travels: FraudAlert in `fraud.alerts`, with headers like any event. The same alert, the same bytes."""

from dataclasses import dataclass
from uuid import UUID

from shared.codec import Codec
from shared.envelope import Message, Recorded, cloud_event_headers, from_millis, pack_headers
from shared.errors import OperatorError
from shared.registry import Registry
from shared.schemas import Schemas
from shared.settings import Settings

TOPIC = "fraud.alerts"
RECORD = "tillroll.fraud.FraudAlert"
SOURCE = "/till-roll/lake"
ACTOR = "lake"


@dataclass(frozen=True, slots=True)
class FraudAlert:
    alert_id: str
    customer_id: str
    payment_token: str
    score: int
    reasons: tuple[str, ...]
    window_start: int
    window_end: int
    at: int


async def alert_codec(settings: Settings, schemas: Schemas) -> Codec:
    """Able to write alerts, and nothing else."""
    schema = schemas.newest(RECORD)
    async with Registry(settings) as registry:
        schema_id = await registry.lookup(schema)
    if schema_id is None:
        raise OperatorError(f"The registry does not know {schema.subject}.", "Register it with: till schemas push")
    codec = Codec()
    codec.bind(FraudAlert, schema, schema_id)
    return codec


def message(alert: FraudAlert, codec: Codec) -> Message:
    """An alert is a stream of one event, whose id is that of the alert: who hears it twice can tell."""
    digits = UUID(alert.alert_id).hex
    recorded = Recorded(
        stream_id=f"alert:{alert.alert_id}",
        version=1,
        event_id=alert.alert_id,
        type="FraudAlert",
        time=from_millis(alert.at),
        correlation_id=alert.alert_id,
        causation_id="",  # many events together, none of them alone
        actor=ACTOR,
        traceparent=f"00-{digits}-{digits[16:]}-01",
        value=codec.encode(alert),
    )
    headers = pack_headers(cloud_event_headers(recorded, SOURCE))
    return Message(TOPIC, recorded.stream_id, recorded.value, headers, recorded.time)
