"""Turns a decision into rows: events, the transactional outbox, deadlines and errands, announced documents."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid5

from uuid_utils import uuid7

from shared.decider import Announcement, Decided, Decider, Versioned
from shared.envelope import Context, Message, Recorded, cloud_event_headers, from_millis, now, pack_headers
from shared.schemas.codec import Codec
from shared.store.event_store import Write


class Recorder:
    """Records the decisions of one kind of stream, with the codec and the source of its service."""

    def __init__(
        self,
        decider: Decider[Any, Any, Any],
        codec: Codec,
        source: str,
        errand: Callable[[Any], object | None] | None = None,
    ) -> None:
        """`source` is the `ce_source` of every message. `errand` gives the errand that a state wants, if any."""
        self._decider = decider
        self._codec = codec
        self._source = source
        self._errand = errand

    def record(self, write: Write, before: Versioned[Any], decided: Decided[Any, Any], context: Context) -> None:
        """Adds to `write` all that a decision with events changes."""
        time, deadlines, version = now(), self._decider.deadlines, before.version
        for event in decided.events:
            version += 1
            recorded = Recorded(
                decided.stream_id,
                version,
                str(uuid7()),
                type(event).__name__,
                time,
                context.correlation_id,
                context.causation_id,
                context.actor,
                context.traceparent,
                self._codec.encode(event),
            )
            write.events.append(recorded)
            write.messages.append(self._message(self._decider.topic, decided.stream_id, recorded))
            if deadlines and (due := deadlines.due(event)) is not None:
                write.deadlines[decided.stream_id] = from_millis(due), version
        if self._errand:
            wanted = self._errand(decided.state)
            if wanted is not None and wanted != self._errand(before.state):
                write.deadlines[decided.stream_id] = time, version
        if self._decider.announce:
            for announcement in self._decider.announce(decided.state, decided.version):
                document = self.document(announcement, recorded)
                write.messages.append(self._message(announcement.topic, announcement.key, document))

    def document(self, announcement: Announcement, cause: Recorded) -> Recorded:
        """Returns the document in the envelope of the event that caused it, with an id of its own.

        The id is derived, so that announcing the same document for the same event again gives the same bytes. Documents
        of older releases have the id of their event; consumers go by key and version, and nothing compares these ids.
        """
        return cause._replace(
            event_id=str(uuid5(UUID(cause.event_id), f"{announcement.topic}/{announcement.key}")),
            type=type(announcement.document).__name__,
            value=self._codec.encode(announcement.document),
        )

    def _message(self, topic: str, key: str, recorded: Recorded) -> Message:
        headers = pack_headers(cloud_event_headers(recorded, self._source))
        return Message(topic, key, recorded.value, headers, recorded.time)
