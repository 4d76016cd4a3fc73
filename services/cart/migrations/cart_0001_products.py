"""Creates the cart's own table of products, and the keys of its customers' personal data."""

import sqlalchemy as sa
from alembic import op

revision = "cart_0001"
down_revision = None
branch_labels = ("cart",)
depends_on = "kernel_0001"


def upgrade() -> None:
    op.create_table(
        "products",
        sa.Column("sku", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("price", sa.BigInteger, nullable=False),
        sa.Column("currency", sa.Text, nullable=False),
        sa.Column("withdrawn", sa.Boolean, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
    )
    op.create_table(
        "customer_keys",
        sa.Column("customer_id", sa.Text, primary_key=True),
        sa.Column("wrapped_key", sa.LargeBinary, nullable=False),
    )
