"""Sinks store events."""

from __future__ import annotations

import dataclasses
import enum
import json
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, Optional

from guidon_plugin._base import Base, OpenRequest
from guidon_plugin._pb.guidon.sink.v1 import sink_pb2

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def time_of(micros: int) -> datetime:
    """Return microseconds since 1970 as a time in UTC."""
    return _EPOCH + timedelta(microseconds=micros)


class Ordering(enum.IntEnum):
    """The order in which a sink needs its batches.

    - NONE: any order.
    - PER_KEY: in order for each distinct id.
    - TOTAL: one batch after the other.
    """

    NONE = 1
    PER_KEY = 2
    TOTAL = 3


class Dedup(enum.IntEnum):
    """What a sink recognizes in a second delivery. It is a promise.

    - NONE: nothing; a second delivery is stored twice.
    - BY_BATCH_ID: the batch, by ``Batch.id``.
    - BY_EVENT_ID: each event, by ``Record.uuid``.
    """

    NONE = 1
    BY_BATCH_ID = 2
    BY_EVENT_ID = 3


class Commit(enum.IntEnum):
    """The call that makes records safe: ``write``, or ``flush`` after ``staged``."""

    IMMEDIATE = 1
    ON_FLUSH = 2


class Durability(enum.IntEnum):
    """What a sink means by "safe", weakest first.

    - MEMORY: survives the exit of the plugin, not of the machine.
    - LOCAL_DISK: on the disk of this machine.
    - REPLICATED: on more than one machine.
    """

    MEMORY = 1
    LOCAL_DISK = 2
    REPLICATED = 3


class Outcome(enum.IntEnum):
    """What became of a batch. UNSPECIFIED means that it is sent again."""

    UNSPECIFIED = 0
    COMMITTED = 1
    STAGED = 2
    PARTIAL = 3
    REJECTED = 4


class FlushReason(enum.IntEnum):
    """Why the server requests a flush."""

    UNSPECIFIED = 0
    TIMER = 1
    SIZE = 2
    DRAIN = 3
    SHUTDOWN = 4
    MANUAL = 5


@dataclasses.dataclass(frozen=True)
class SinkProperties:
    """How a sink wants to be fed and what it promises. The defaults are the weakest choice."""

    #: How many ``write`` calls may run at once.
    max_in_flight: int = 1
    #: Bounds of a batch; 0 leaves them to the server.
    max_events: int = 0
    max_bytes: int = 0
    #: How long the server may wait to fill a batch.
    linger: timedelta = timedelta(0)
    ordering: Ordering = Ordering.NONE
    dedup: Dedup = Dedup.NONE
    commit: Commit = Commit.IMMEDIATE
    durability: Durability = Durability.MEMORY
    #: Bounds of what may wait for a flush, with Commit.ON_FLUSH.
    max_staged_events: int = 0
    max_staged_bytes: int = 0
    max_staged_age: timedelta = timedelta(0)


class Record:
    """One event of a batch.

    - ``json``: the event as one JSON object without line breaks, in bytes.
    - ``project_id``: the project of the event.
    """

    __slots__ = ("json", "project_id", "_id", "_received")

    def __init__(self, json: bytes, project_id: int, id: bytes, received: int) -> None:  # noqa: A002
        #: The canonical event: one JSON object without line breaks.
        self.json = json
        #: The project of the event.
        self.project_id = project_id
        self._id = id
        self._received = received

    @property
    def uuid(self) -> uuid.UUID:
        """The identity of the event, the same on every delivery."""
        return uuid.UUID(bytes=self._id)

    @property
    def received_at(self) -> datetime:
        """When the server accepted the event, in UTC."""
        return time_of(self._received)

    def event(self) -> dict[str, Any]:
        """Decode the event. Numbers beyond a float lose digits; ``json`` keeps them."""
        out: dict[str, Any] = json.loads(self.json)
        return out


@dataclasses.dataclass(frozen=True)
class Failure:
    """One record that was not stored: its index in the batch, and why."""

    index: int
    error: Exception


@dataclasses.dataclass(frozen=True)
class WriteResult:
    """The answer to a batch. Make it with the methods of Batch."""

    outcome: Outcome = Outcome.UNSPECIFIED
    #: Every accepted record up to this sequence number is safe.
    committed_through: int = 0
    failures: Sequence[Failure] = ()
    #: What waits for a flush.
    staged_events: int = 0
    staged_bytes: int = 0
    #: Records that had been stored before.
    duplicates: int = 0


class Batch:
    """Consecutive events for one instance. Record *i* has the number ``first_seq + i``.

    A batch that is sent again has the same id and the same records; only ``attempt``
    differs.

    - ``records``: the events, in the order in which they were accepted, as ``Record``.
    - ``id``: names this content for ever.
    - ``attempt``: counts the deliveries of this id from 1.
    - ``first_seq``, ``last_seq``: the numbers of the first and last record.
    """

    def __init__(self, request: sink_pb2.WriteBatchRequest) -> None:
        columns = request.records
        #: Names this content for ever.
        self.id: str = request.batch_id
        #: Counts the deliveries of this id from 1.
        self.attempt: int = request.attempt
        self.first_seq: int = request.first_seq
        self.last_seq: int = request.last_seq
        ids, projects = columns.ids, columns.projects
        #: The events, in the order in which they were accepted.
        self.records: list[Record] = [
            Record(text, projects[project], ids[16 * i : 16 * i + 16], received)
            for i, (text, project, received) in enumerate(zip(columns.json, columns.project_index, columns.received_us))
        ]

    def __len__(self) -> int:
        return len(self.records)

    def ndjson(self) -> bytes:
        """Return the events as lines of JSON, each ended by a line feed."""
        return b"".join(r.json + b"\n" for r in self.records)

    def events(self) -> list[dict[str, Any]]:
        """Decode every event."""
        return [r.event() for r in self.records]

    def committed(self, duplicates: int = 0) -> WriteResult:
        """Every record is safe, at the durability that the sink declared."""
        return WriteResult(Outcome.COMMITTED, self.last_seq, duplicates=duplicates)

    def partial(self, failures: Sequence[Failure]) -> WriteResult:
        """Every record is safe except those listed."""
        return WriteResult(Outcome.PARTIAL, self.last_seq, tuple(failures)) if failures else self.committed()

    def staged(self, through: int, events: int = 0, size: int = 0) -> WriteResult:
        """Every record is accepted and not safe yet; ``through`` is how far all is safe."""
        return WriteResult(Outcome.STAGED, through, staged_events=events, staged_bytes=size)


@dataclasses.dataclass(frozen=True)
class FlushRequest:
    """Asks a sink to make staged records safe, at least up to ``up_to``."""

    reason: FlushReason
    up_to: int


@dataclasses.dataclass(frozen=True)
class FlushFailure:
    """One staged record that cannot be stored: its sequence number, and why."""

    seq: int
    error: Exception


@dataclasses.dataclass(frozen=True)
class FlushResult:
    """How far a flush got."""

    committed_through: int
    failures: Sequence[FlushFailure] = ()


class Sink(Base):
    """Stores events somewhere.

    ``write`` runs in as many threads as ``SinkProperties.max_in_flight``; ``open`` and
    ``close`` never run beside it. Implement ``flush`` as well to answer ``staged``.
    """

    def open(self, request: OpenRequest) -> SinkProperties:
        """Connect. ConfigError stops the instance; any other exception is tried again."""
        raise NotImplementedError

    def write(self, batch: Batch) -> WriteResult:
        """Store a batch. An exception means that no record of it is safe."""
        raise NotImplementedError

    def flush(self, request: FlushRequest) -> FlushResult:
        """Make staged records safe. Optional."""
        return FlushResult(request.up_to)


def properties_to_proto(p: SinkProperties) -> sink_pb2.SinkProperties:
    """Return the message of the properties."""
    out = sink_pb2.SinkProperties(
        max_in_flight=max(1, p.max_in_flight),
        max_events=p.max_events,
        max_bytes=p.max_bytes,
        ordering=int(p.ordering),  # type: ignore[arg-type]
        dedup=int(p.dedup),  # type: ignore[arg-type]
        commit=int(p.commit),  # type: ignore[arg-type]
        durability=int(p.durability),  # type: ignore[arg-type]
        max_staged_events=p.max_staged_events,
        max_staged_bytes=p.max_staged_bytes,
        accepts=["json/v1"],
    )
    out.linger.FromTimedelta(p.linger)
    out.max_staged_age.FromTimedelta(p.max_staged_age)
    return out


def columns_error(request: sink_pb2.WriteBatchRequest) -> Optional[str]:
    """Return what is wrong with the columns of a batch, which is a mistake of the host."""
    r = request.records
    n = len(r.json)
    if len(r.ids) != 16 * n or len(r.received_us) != n or len(r.project_index) != n:
        return "columns of different lengths"
    if n and max(r.project_index) >= len(r.projects):
        return "project index out of range"
    return None
