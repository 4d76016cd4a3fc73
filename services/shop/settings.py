"""Settings of the shop: those of all its services, and its own."""

from pydantic import Field

from services.cart.settings import CartSettings
from services.catalog.settings import CatalogSettings
from services.order.settings import OrderSettings
from services.payment.settings import PaymentSettings
from shared.settings import Port


class ShopSettings(CatalogSettings, CartSettings, OrderSettings, PaymentSettings):
    """Combines the settings of all services, and adds those of the one process that runs them together."""

    shop_port: Port = Field(8080, description="Port of the shop API.")
    session_hours: float = Field(24, gt=0, description="Hours for which a guest's token is valid.")
