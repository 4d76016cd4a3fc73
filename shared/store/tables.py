"""The kernel's tables, declared with SQLModel; every service has them in a PostgreSQL schema of its own.

Migrations are tested against these declarations. Reads and writes of these tables are hot paths and are plain SQL.
"""

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Text,
    UniqueConstraint,
)
from sqlmodel import Field, SQLModel

KERNEL = MetaData()


def moment() -> Column[datetime]:
    return Column(DateTime(timezone=True), nullable=False)


class Kernel(SQLModel):
    """The base of the kernel's tables, which keeps them apart from the tables of services."""

    metadata = KERNEL


class StoredEvent(Kernel, table=True):
    """The event log. Rows are inserted, never changed; `unique(stream_id, version)` is the optimistic lock."""

    __tablename__ = "events"
    __table_args__ = (
        UniqueConstraint("stream_id", "version", name="events_stream_version"),
        # Event time follows insertion closely: a BRIN index answers "as of T" for next to nothing.
        Index("events_time", "time", postgresql_using="brin"),
    )

    position: int = Field(sa_column=Column(BigInteger, Identity(always=False), primary_key=True))
    stream_id: str = Field(sa_type=Text)
    version: int = Field(sa_type=Integer)
    event_id: UUID
    type: str = Field(sa_type=Text)
    time: datetime = Field(sa_column=moment())
    correlation_id: str = Field(sa_type=Text)
    causation_id: str = Field(sa_type=Text)
    actor: str = Field(sa_type=Text)
    traceparent: str = Field(sa_type=Text)
    value: bytes = Field(sa_type=LargeBinary)


class OutboxMessage(Kernel, table=True):
    """The transactional outbox: messages not yet acknowledged by Kafka. The relay deletes exactly those that are."""

    __tablename__ = "outbox"

    position: int = Field(sa_column=Column(BigInteger, Identity(always=False), primary_key=True))
    topic: str = Field(sa_type=Text)
    key: str = Field(sa_type=Text)
    value: bytes = Field(sa_type=LargeBinary)
    headers: bytes = Field(sa_type=LargeBinary)
    time: datetime = Field(sa_column=moment())


class Snapshot(Kernel, table=True):
    """The latest stored state of a long stream. `fold` identifies the code that folded it; other code ignores it."""

    __tablename__ = "snapshots"

    stream_id: str = Field(sa_column=Column(Text, primary_key=True))
    version: int = Field(sa_type=Integer)
    fold: str = Field(sa_type=Text)
    state: bytes = Field(sa_type=LargeBinary)


class Milestone(Kernel, table=True):
    """An older state of a long stream, for time travel. No event up to it is later than `until`."""

    __tablename__ = "milestones"

    stream_id: str = Field(sa_column=Column(Text, primary_key=True))
    version: int = Field(sa_column=Column(Integer, primary_key=True))
    fold: str = Field(sa_type=Text)
    until: datetime = Field(sa_column=moment())
    state: bytes = Field(sa_type=LargeBinary)


class ConsumerOffset(Kernel, table=True):
    """The position of a consumer, stored in the transaction of its effects. Moved by compare-and-set only (fencing)."""

    __tablename__ = "offsets"

    consumer: str = Field(sa_column=Column(Text, primary_key=True))
    topic: str = Field(sa_column=Column(Text, primary_key=True))
    partition: int = Field(sa_column=Column(Integer, primary_key=True))
    next_offset: int = Field(sa_type=BigInteger)


class IdempotentAnswer(Kernel, table=True):
    """The answer to a request with an Idempotency-Key, stored in the transaction of the request's events."""

    __tablename__ = "answers"

    actor: str = Field(sa_column=Column(Text, primary_key=True))
    key: str = Field(sa_column=Column(Text, primary_key=True))
    request: bytes = Field(sa_type=LargeBinary)
    status: int = Field(sa_type=SmallInteger)
    headers: bytes = Field(sa_type=LargeBinary)
    body: bytes = Field(sa_type=LargeBinary)
    time: datetime = Field(sa_column=moment())


class Deadline(Kernel, table=True):
    """The moment to look at a stream again: a deadline that it set, or an errand that it wants (due at once)."""

    __tablename__ = "deadlines"
    __table_args__ = (Index("deadlines_due", "due"),)

    stream_id: str = Field(sa_column=Column(Text, primary_key=True))
    due: datetime = Field(sa_column=moment())
    version: int = Field(sa_column=Column(Integer, nullable=False, server_default="0"))
    """The version of the event that set it, which is the cause of what follows; 0 in rows of an old release."""


class StoredSchema(Kernel, table=True):
    """A schema of the registry, stored so that a service starts and reads while the registry is down."""

    __tablename__ = "schemas"

    id: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))
    subject: str = Field(sa_column=Column(Text, primary_key=True))
    schema_text: str = Field(sa_type=Text)


class SettledLetter(Kernel, table=True):
    """A dead letter that an operator has retried or dropped.

    Its offset in the dead-letter topic does not identify it: a relay that died may have sent it twice, and a topic that
    was created again counts from 0.
    """

    __tablename__ = "settled_letters"

    consumer: str = Field(sa_column=Column(Text, primary_key=True))
    topic: str = Field(sa_column=Column(Text, primary_key=True))
    partition: int = Field(sa_column=Column(Integer, primary_key=True))
    offset: int = Field(sa_column=Column(BigInteger, primary_key=True))
    died: datetime = Field(sa_column=Column(DateTime(timezone=True), primary_key=True))
    how: str = Field(sa_type=Text)
    why: str = Field(sa_type=Text)
    by: str = Field(sa_type=Text)
    time: datetime = Field(sa_column=moment())
