"""Stores the event that set a deadline."""

import sqlalchemy as sa
from alembic import op

revision = "kernel_0003"
down_revision = "kernel_0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The default is for an older release that still runs and sets deadlines without it.
    op.add_column("deadlines", sa.Column("version", sa.Integer, nullable=False, server_default="0"))
