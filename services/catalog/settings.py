"""Settings of the catalog service."""

from pydantic import Field

from services.common.settings import ServiceSettings
from shared.settings import Port


class CatalogSettings(ServiceSettings):
    """Adds what the catalog service reads to the settings that all services share."""

    catalog_port: Port = Field(8181, description="Port of `services.catalog` when it runs alone.")
