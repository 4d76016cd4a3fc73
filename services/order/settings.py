"""Settings of the order service."""

from pydantic import Field

from services.common.settings import ServiceSettings
from shared.settings import Port


class OrderSettings(ServiceSettings):
    """Adds what the order service reads to the settings that all services share."""

    order_port: Port = Field(8183, description="Port of `services.order` when it runs alone.")
    order_timeout_seconds: float = Field(300, gt=0, description="Seconds after which an unfinished order is cancelled.")
    review_timeout_seconds: float = Field(
        86_400, gt=0, description="Seconds after which an order is cancelled if its held payment is not reviewed."
    )
