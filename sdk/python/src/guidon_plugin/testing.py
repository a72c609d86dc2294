"""Helpers for the tests of a plugin, without a server and without a process.

``guidon plugin test`` judges the finished executable. These helpers test what only
the author knows: what a sink stores, what a notifier sends, what an operator matches.
They raise what the plugin raises: ``with self.assertRaises(guidon.Permanent): ...``.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any, Optional, TypeVar

from guidon_plugin import _config
from guidon_plugin._base import Base, OpenRequest, check_signatures
from guidon_plugin._kinds import Programs
from guidon_plugin._log import for_instance
from guidon_plugin._matcher import Input, Matcher, Verdict
from guidon_plugin._notifier import Action, Notification, Person, Project, Segment
from guidon_plugin._pb.guidon.match.v1 import match_pb2
from guidon_plugin._pb.guidon.sink.v1 import sink_pb2
from guidon_plugin._sink import Batch

_Kind = TypeVar("_Kind", bound=Base)


def configured(cls: type[_Kind], config: Optional[Mapping[str, Any]] = None) -> _Kind:
    """Return an instance with a config, decoded and validated as by the server.

    It raises ConfigErrors for a config that the server would refuse.
    """
    wrong = check_signatures(cls)
    if wrong:
        raise TypeError(wrong)
    instance = cls()
    instance.config = _config.decode_config(_config.config_class(cls), json.dumps(dict(config or {})))
    instance.log = for_instance("test")
    instance.validate()
    return instance


@contextlib.contextmanager
def opened(cls: type[_Kind], config: Optional[Mapping[str, Any]] = None, committed_through: int = 0) -> Iterator[_Kind]:
    """Configure and open an instance, and close it at the end, as the server does."""
    instance: Any = configured(cls, config)
    try:
        instance.open(OpenRequest("test", committed_through))
        yield instance
    finally:
        instance.close()


def event(name: str = "$pageview", **fields: Any) -> dict[str, Any]:
    """Return an event as the server writes it; ``fields`` replace or add members."""
    return {
        "uuid": str(uuid.uuid4()),
        "project_id": 1,
        "event": name,
        "distinct_id": "ada",
        "timestamp": "2026-01-31T12:30:00.000000Z",
        "received_at": "2026-01-31T12:30:00.000000Z",
        "properties": {},
        **fields,
    }


def batch(*events: Mapping[str, Any], first_seq: int = 1, attempt: int = 1) -> Batch:
    """Return a batch of events. Calls with the same events are deliveries of the same batch."""
    texts = [json.dumps(e, separators=(",", ":"), ensure_ascii=False).encode() for e in events]
    ids = [uuid.UUID(e["uuid"]) if "uuid" in e else uuid.uuid5(uuid.NAMESPACE_OID, repr(e)) for e in events]
    n = len(texts)
    return Batch(
        sink_pb2.WriteBatchRequest(
            instance_id="test",
            batch_id=str(uuid.uuid5(uuid.NAMESPACE_OID, f"{first_seq} {texts}")),
            attempt=attempt,
            first_seq=first_seq,
            last_seq=first_seq + n - 1,
            records=sink_pb2.RecordBatch(
                ids=b"".join(i.bytes for i in ids),
                json=texts,
                received_us=[1_769_862_600_000_000] * n,
                project_index=[0] * n,
                projects=[1],
            ),
        )
    )


def notification(*segments: Segment, text: str = "", **fields: Any) -> Notification:
    """Return a notification of the segments; ``fields`` replace fields of Notification."""
    values: dict[str, Any] = {
        "id": str(uuid.uuid4()),
        "attempt": 1,
        "expires_at": None,
        "destination": "",
        "project": Project(1, "Example", "https://guidon.example.com/project/1"),
        "action": Action(1, "Signed up", "https://guidon.example.com/project/1/action/1"),
        "event": event("signed up"),
        "event_url": "https://guidon.example.com/project/1/events/1",
        "person": Person("ada", "https://guidon.example.com/project/1/person/ada", {}),
        "text": text or "".join(s.value for s in segments),
        "segments": segments,
        "template": "",
        "suppressed": 0,
        "test": False,
    }
    values.update(fields)
    return Notification(**values)


def verdict(matcher: Matcher, operator: str, value: Any, given: Any, now: Optional[datetime] = None) -> Verdict:
    """Compile the value of a filter and match a property with it, as the server does.

    ``given`` is the property, or for a program with ``reads`` a dict of properties. It
    raises ConfigErrors for a value that does not conform to ``value_schema``, and
    ValueRefused for one that ``compile`` refuses.
    """
    program = match_pb2.Program(operator_id=operator, value_json=json.dumps(value).encode())
    match, _ = Programs(matcher).compile(program)
    return _as_verdict(match(Input(json.dumps(given).encode(), now or datetime.now(timezone.utc))))


def check_examples(matcher: Matcher) -> None:
    """Raise AssertionError for an example of an operator that does not hold."""
    for operator in matcher.operators():
        for e in operator.examples:
            got = verdict(matcher, operator.id, e.value, e.property, e.now)
            if got != e.result:
                raise AssertionError(f"{operator.id} {e.value!r} of {e.property!r} is {got.name}, want {e.result.name}")


def _as_verdict(result: Any) -> Verdict:
    """Return the result of a program as a verdict."""
    if isinstance(result, bool):
        return Verdict.MATCH if result else Verdict.NO_MATCH
    return Verdict(result)
