"""Settings of the simulated payment provider."""

from pydantic import Field

from services.common.settings import ProviderSettings


class PspSettings(ProviderSettings):
    """Adds how the simulated provider behaves to its address."""

    psp_latency_ms: float = Field(20, ge=0, description="Milliseconds that the simulated provider takes to answer.")
    psp_late_seconds: float = Field(30, ge=0, description="Seconds after which it answers for `tok_timeout`.")
    psp_failure_rate: float = Field(0, ge=0, le=1, description="Share of requests that it answers with 503.")
