"""Creates the read model of orders that customers list."""

import sqlalchemy as sa
from alembic import op

revision = "order_0001"
down_revision = None
branch_labels = ("order",)
depends_on = "kernel_0001"


def upgrade() -> None:
    op.create_table(
        "orders",
        sa.Column("order_id", sa.Text, primary_key=True),
        sa.Column("cart_id", sa.Text, nullable=False),
        sa.Column("customer_id", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=True),
        sa.Column("lines", sa.Text, nullable=False),
        sa.Column("total", sa.BigInteger, nullable=False),
        sa.Column("currency", sa.Text, nullable=False),
        sa.Column("payment_id", sa.Text, nullable=True),
        sa.Column("placed_at", sa.BigInteger, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
    )
    op.create_index("orders_customer", "orders", ["customer_id", "placed_at", "order_id"])
    op.create_index("orders_cart", "orders", ["cart_id"])
