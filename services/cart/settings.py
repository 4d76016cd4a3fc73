"""Settings of the cart service."""

from pydantic import Field

from services.common.settings import ServiceSettings
from shared.settings import Port


class CartSettings(ServiceSettings):
    """Adds what the cart service reads to the settings that all services share."""

    cart_port: Port = Field(8182, description="Port of `services.cart` when it runs alone.")
    cart_idle_minutes: float = Field(60, gt=0, description="Minutes after which an untouched cart is abandoned.")
    currency: str = Field("EUR", pattern="^[A-Z]{3}$", description="Currency of an empty cart's total.")
