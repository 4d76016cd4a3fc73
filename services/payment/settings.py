"""Settings of the payment service."""

from pydantic import Field

from services.common.settings import ProviderSettings
from shared.settings import Port


class PaymentSettings(ProviderSettings):
    """Adds what the payment service reads to the provider's address."""

    payment_port: Port = Field(8184, description="Port of `services.payment` when it runs alone.")
    psp_timeout: float = Field(2, gt=0, description="Seconds that payment waits for the provider's answer.")
