"""Creates the read model of the catalog that shoppers browse."""

import sqlalchemy as sa
from alembic import op

revision = "catalog_0001"
down_revision = None
branch_labels = ("catalog",)
depends_on = "kernel_0001"


def upgrade() -> None:
    op.create_table(
        "products",
        sa.Column("sku", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("price", sa.BigInteger, nullable=False),
        sa.Column("currency", sa.Text, nullable=False),
        sa.Column("available", sa.Integer, nullable=False),
        sa.Column("withdrawn", sa.Boolean, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
    )
