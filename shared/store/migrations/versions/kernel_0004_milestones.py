"""Creates the table of milestones, the older states of long streams."""

import sqlalchemy as sa
from alembic import op

revision = "kernel_0004"
down_revision = "kernel_0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "milestones",
        sa.Column("stream_id", sa.Text, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("fold", sa.Text, nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.LargeBinary, nullable=False),
    )
    # Without snapshots, long streams are folded from their beginning once more and leave milestones on the way.
    op.execute("DELETE FROM snapshots")
