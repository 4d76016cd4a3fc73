"""Creates the table of dead letters that an operator has retried or dropped."""

import sqlalchemy as sa
from alembic import op

revision = "kernel_0002"
down_revision = "kernel_0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "settled_letters",
        sa.Column("consumer", sa.Text, primary_key=True),
        sa.Column("topic", sa.Text, primary_key=True),
        sa.Column("partition", sa.Integer, primary_key=True),
        sa.Column("offset", sa.BigInteger, primary_key=True),
        sa.Column("died", sa.DateTime(timezone=True), primary_key=True),
        sa.Column("how", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
    )
