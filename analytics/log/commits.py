"""Typed metadata of the lake's commits: who wrote one, from which batch, and which Kafka offsets it has reached.

Every commit of the lake carries a JSON document as Delta's `userMetadata`, so data and progress become visible
together or not at all. The keys of that document are stored in lakes that exist: they must not change.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from analytics.log.cut import Cut
from analytics.log.offsets import Offsets


@dataclass(frozen=True)
class Commit:
    """Metadata that the lake itself wrote. Compactions, comments and the creation of a table carry none."""

    QUERY: ClassVar[str]
    """Value of the key `query`: the writer."""

    def fields(self) -> dict[str, Any]:
        """Returns the document without its `query`."""
        return {}

    def metadata(self) -> str:
        return json.dumps({"query": self.QUERY, **self.fields()})


@dataclass(frozen=True)
class ProgressCommit(Commit):
    """Metadata that says how far the table has come."""

    @property
    def reached(self) -> Offsets:
        """The Kafka offsets up to which the table has seen all messages."""
        raise NotImplementedError


@dataclass(frozen=True)
class IngestCommit(ProgressCommit):
    """Metadata that the ingest writes to every table of a batch, the same in all of them."""

    QUERY = "ingest"

    generation: str
    """Identifies the checkpoint: batch numbers are unique only within it."""
    batch: int
    offsets: Offsets
    topics: Mapping[str, str] = field(default_factory=dict)
    """Topic ids by name: a topic that is deleted and created again has another id."""

    @property
    def reached(self) -> Offsets:
        return self.offsets

    @property
    def batch_id(self) -> tuple[str, int]:
        """Generation and number: the same in all tables of a batch, and in no other batch."""
        return self.generation, self.batch

    def fields(self) -> dict[str, Any]:
        return {
            "generation": self.generation,
            "batch": self.batch,
            "offsets": self.offsets,
            "topics": self.topics,
        }

    def write_options(self, table: str) -> dict[str, str]:
        """Returns options for Delta's writer: it accepts each batch of a generation once, however often it is sent."""
        return {
            "txnAppId": f"{self.generation}:{table}",
            "txnVersion": str(self.batch),
            "userMetadata": self.metadata(),
        }


@dataclass(frozen=True)
class RetryCommit(Commit):
    """Metadata of events that came to silver from quarantine: they belong to no batch."""

    QUERY = "retry"


@dataclass(frozen=True)
class ComputedCommit(ProgressCommit):
    """Metadata of a table that is computed from silver."""

    cut: Cut
    """The part of silver that the table has seen."""
    logic: int
    """Version of the code that computed it."""

    @property
    def reached(self) -> Offsets:
        return self.cut.offsets

    def fields(self) -> dict[str, Any]:
        return {**self.cut.fields(), "logic": self.logic}


@dataclass(frozen=True)
class GoldCommit(ComputedCommit):
    """Metadata of a gold table, `gold.*`: of a refresh, of a swap, or of an undone swap."""

    QUERY = "gold"

    before: int | None = None
    """Set by the swap at the end of a replay: the version that was live before it."""
    undone: int | None = None
    """Set when a replay is undone: the version of the swap."""

    def fields(self) -> dict[str, Any]:
        more = {"before": self.before, "undone": self.undone}
        return super().fields() | {name: value for name, value in more.items() if value is not None}


@dataclass(frozen=True)
class BatchCommit(ComputedCommit):
    """Metadata of Lambda's batch layer, `batch.*`."""

    QUERY = "batch"


@dataclass(frozen=True)
class ReplayCommit(ComputedCommit):
    """Metadata of a table that is being replayed, `replay.*`."""

    QUERY = "replay"


@dataclass(frozen=True)
class SpeedCommit(ComputedCommit):
    """Metadata of Lambda's speed layer, `speed.*`. The serving view needs nothing else to be computed."""

    QUERY = "speed"

    base: int
    """Version of the batch table whose rows these change."""
    served: Mapping[str, Any]
    """Rule by which the two are combined: `analytics.serving.serving_view.ServingView`."""

    def fields(self) -> dict[str, Any]:
        return super().fields() | {"base": self.base, "served": self.served}


def from_metadata(text: str | None) -> Commit | None:
    """Reads a commit's `userMetadata`. Returns None where it is empty or was not written by the lake."""
    try:
        document = json.loads(text or "{}")
        return _commit(document)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _commit(document: Mapping[str, Any]) -> Commit | None:
    match document.get("query"):
        case IngestCommit.QUERY:
            return IngestCommit(
                document["generation"], document["batch"], document["offsets"], document.get("topics", {})
            )
        case RetryCommit.QUERY:
            return RetryCommit()
        case GoldCommit.QUERY:
            return GoldCommit(*_computed(document), document.get("before"), document.get("undone"))
        case BatchCommit.QUERY:
            return BatchCommit(*_computed(document))
        case ReplayCommit.QUERY:
            return ReplayCommit(*_computed(document))
        case SpeedCommit.QUERY:
            return SpeedCommit(*_computed(document), document["base"], document["served"])
        case _:
            return None


def _computed(document: Mapping[str, Any]) -> tuple[Cut, int]:
    return Cut(document["silver"], document["generation"], document["batch"], document["offsets"]), document["logic"]
