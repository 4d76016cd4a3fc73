"""Creates the table of the keys that encrypt customers' personal data."""

import sqlalchemy as sa
from alembic import op

revision = "vault_0001"
down_revision = None
branch_labels = ("vault",)
depends_on = None


def upgrade() -> None:
    op.create_table(
        "customer_keys",
        sa.Column("customer_id", sa.Text, primary_key=True),
        sa.Column("wrapped_key", sa.LargeBinary, nullable=False),
        schema="vault",
    )
