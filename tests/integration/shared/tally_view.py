"""A read model of tallies: the total of each stream."""

from sqlalchemy import BigInteger, Text
from sqlmodel import Field, SQLModel

from shared.messaging.incoming import Incoming
from shared.store.views import RowView


class TallyRow(SQLModel):
    stream_id: str = Field(sa_type=Text, primary_key=True)
    total: int = Field(sa_type=BigInteger)
    version: int


def count(row: TallyRow | None, message: Incoming) -> TallyRow:
    before = row.total if row else 0
    return TallyRow(stream_id=message.stream_id, total=before + message.data.amount, version=message.version)


VIEW = RowView(TallyRow, "tallies", lambda message: message.stream_id, count)
