"""The event FraudAlert in the topic `fraud.alerts`, with headers like any event. Equal alerts have equal bytes."""

from dataclasses import dataclass
from uuid import UUID

from analytics.catalog import ALERTS
from analytics.settings import LakeSettings
from shared.envelope import Message, Recorded, cloud_event_headers, from_millis, pack_headers
from shared.errors import OperatorError
from shared.schemas.codec import Codec
from shared.schemas.contract.event_schemas import Schemas
from shared.schemas.registry import Registry

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


async def open_alert_codec(settings: LakeSettings, schemas: Schemas) -> Codec:
    """Opens a codec that can write alerts, and nothing else."""
    schema = schemas.newest(RECORD)
    async with Registry(settings) as registry:
        schema_id = await registry.lookup(schema)
    if schema_id is None:
        raise OperatorError(f"The registry does not know {schema.subject}.", "Register it with: till schemas push")
    codec = Codec()
    codec.bind(FraudAlert, schema, schema_id)
    return codec


def to_message(alert: FraudAlert, codec: Codec) -> Message:
    """Builds the message. An alert is a stream of one event with the alert's id, so consumers recognise duplicates."""
    digits = UUID(alert.alert_id).hex
    recorded = Recorded(
        stream_id=f"alert:{alert.alert_id}",
        version=1,
        event_id=alert.alert_id,
        type="FraudAlert",
        time=from_millis(alert.at),
        correlation_id=alert.alert_id,
        causation_id="",  # no single event causes an alert
        actor=ACTOR,
        traceparent=f"00-{digits}-{digits[16:]}-01",
        value=codec.encode(alert),
    )
    headers = pack_headers(cloud_event_headers(recorded, SOURCE))
    return Message(ALERTS, recorded.stream_id, recorded.value, headers, recorded.time)
