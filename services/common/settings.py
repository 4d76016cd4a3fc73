"""Settings that every service of the shop reads, on top of the kernel's."""

from typing import Self

from pydantic import Field, model_validator

from shared.settings import HOST, Port, Settings, derive


class ServiceSettings(Settings):
    """Adds the address that the shop's HTTP servers bind to."""

    shop_host: str = Field(HOST, description="Address the HTTP servers bind to.")


class ProviderSettings(ServiceSettings):
    """Adds the address of the payment provider, which payment calls and the simulated provider serves."""

    psp_port: Port = Field(8190, description="Port of the simulated payment provider.")
    psp_url: str = Field("", description="URL of the payment provider. Default: the simulated one.")

    @model_validator(mode="after")
    def _derive_provider(self) -> Self:
        return derive(self, psp_url=f"http://{HOST}:{self.psp_port}")
