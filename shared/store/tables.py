"""The kernel's tables, the same in every service's PostgreSQL schema (a connection's search_path says whose)."""

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
    metadata = KERNEL


class StoredEvent(Kernel, table=True):
    """The till roll. Rows are inserted, never changed; `unique(stream_id, version)` is the optimistic lock."""

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
    """Committed, and not yet acknowledged by Kafka. The relay deletes exactly what was acknowledged."""

    __tablename__ = "outbox"

    position: int = Field(sa_column=Column(BigInteger, Identity(always=False), primary_key=True))
    topic: str = Field(sa_type=Text)
    key: str = Field(sa_type=Text)
    value: bytes = Field(sa_type=LargeBinary)
    headers: bytes = Field(sa_type=LargeBinary)
    time: datetime = Field(sa_column=moment())


class Snapshot(Kernel, table=True):
    """A state on the way of a long stream. `fold` names the code that folded it; other code ignores it."""

    __tablename__ = "snapshots"

    stream_id: str = Field(sa_column=Column(Text, primary_key=True))
    version: int = Field(sa_type=Integer)
    fold: str = Field(sa_type=Text)
    state: bytes = Field(sa_type=LargeBinary)


class Milestone(Kernel, table=True):
    """A state of the past, for who asks how it was. No event up to it is younger than `until`."""

    __tablename__ = "milestones"

    stream_id: str = Field(sa_column=Column(Text, primary_key=True))
    version: int = Field(sa_column=Column(Integer, primary_key=True))
    fold: str = Field(sa_type=Text)
    until: datetime = Field(sa_column=moment())
    state: bytes = Field(sa_type=LargeBinary)


class ConsumerOffset(Kernel, table=True):
    """How far a consumer is, kept in the transaction of what it caused. Moved by compare-and-set only."""

    __tablename__ = "offsets"

    consumer: str = Field(sa_column=Column(Text, primary_key=True))
    topic: str = Field(sa_column=Column(Text, primary_key=True))
    partition: int = Field(sa_column=Column(Integer, primary_key=True))
    next_offset: int = Field(sa_type=BigInteger)


class StoredAnswer(Kernel, table=True):
    """What a request with an Idempotency-Key was answered, in the transaction of what it did."""

    __tablename__ = "answers"

    actor: str = Field(sa_column=Column(Text, primary_key=True))
    key: str = Field(sa_column=Column(Text, primary_key=True))
    request: bytes = Field(sa_type=LargeBinary)
    status: int = Field(sa_type=SmallInteger)
    headers: bytes = Field(sa_type=LargeBinary)
    body: bytes = Field(sa_type=LargeBinary)
    time: datetime = Field(sa_column=moment())


class Deadline(Kernel, table=True):
    """When to look at a stream again."""

    __tablename__ = "deadlines"
    __table_args__ = (Index("deadlines_due", "due"),)

    stream_id: str = Field(sa_column=Column(Text, primary_key=True))
    due: datetime = Field(sa_column=moment())
    version: int = Field(sa_column=Column(Integer, nullable=False, server_default="0"))
    """Of the event that set it, and so the cause of what is done then; 0 where it was not kept yet."""


class KnownSchema(Kernel, table=True):
    """What the registry said, remembered so that a service starts and reads while the registry is down."""

    __tablename__ = "schemas"

    id: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))
    subject: str = Field(sa_column=Column(Text, primary_key=True))
    schema_text: str = Field(sa_type=Text)


class SettledLetter(Kernel, table=True):
    """A dead letter that an operator is done with. Its place in the dead-letter topic is not its name: a relay that
    died may have sent it twice, and a topic that was made anew counts from 0 again.
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
