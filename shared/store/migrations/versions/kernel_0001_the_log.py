"""Creates the kernel's tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import UUID

revision = "kernel_0001"
down_revision = None
branch_labels = ("kernel",)
depends_on = None


def moment(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def text(name: str, primary_key: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, primary_key=primary_key)


def data(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=False)


def position() -> sa.Column[int]:
    return sa.Column("position", sa.BigInteger, sa.Identity(always=False), primary_key=True)


def upgrade() -> None:
    op.create_table(
        "events",
        position(),
        text("stream_id"),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("event_id", UUID, nullable=False),
        text("type"),
        moment("time"),
        text("correlation_id"),
        text("causation_id"),
        text("actor"),
        text("traceparent"),
        data("value"),
        sa.UniqueConstraint("stream_id", "version", name="events_stream_version"),
    )
    op.create_index("events_time", "events", ["time"], postgresql_using="brin")
    op.create_table("outbox", position(), text("topic"), text("key"), data("value"), data("headers"), moment("time"))
    # A queue: every row is short-lived. Vacuum by count, not by share, or dead rows pile up before the live ones.
    op.execute(
        "ALTER TABLE outbox SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,"
        " autovacuum_vacuum_insert_threshold = -1)"
    )
    op.create_table(
        "snapshots",
        text("stream_id", primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
        text("fold"),
        data("state"),
    )
    op.create_table(
        "offsets",
        text("consumer", primary_key=True),
        text("topic", primary_key=True),
        sa.Column("partition", sa.Integer, primary_key=True),
        sa.Column("next_offset", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "answers",
        text("actor", primary_key=True),
        text("key", primary_key=True),
        data("request"),
        sa.Column("status", sa.SmallInteger, nullable=False),
        data("headers"),
        data("body"),
        moment("time"),
    )
    op.create_table("deadlines", text("stream_id", primary_key=True), moment("due"))
    op.create_index("deadlines_due", "deadlines", ["due"])
    op.create_table(
        "schemas",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        text("subject", primary_key=True),
        text("schema_text"),
    )
