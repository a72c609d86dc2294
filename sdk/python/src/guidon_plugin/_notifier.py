"""Notifiers tell people about events."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Callable, Optional

from guidon_plugin._base import Base, OpenRequest
from guidon_plugin._pb.guidon.notify.v1 import notify_pb2
from guidon_plugin._sink import time_of


class SegmentKind(enum.IntEnum):
    """How a part of a message is shown."""

    TEXT = 1
    BOLD = 2
    LINK = 3
    CODE = 4
    USER = 5


@dataclasses.dataclass(frozen=True)
class Segment:
    """A part of a message. ``value`` is not escaped; ``href`` is where a link leads, or ""."""

    kind: SegmentKind
    value: str
    href: str = ""


@dataclasses.dataclass(frozen=True)
class Project:
    """The project of a notification."""

    id: int
    name: str
    url: str


@dataclasses.dataclass(frozen=True)
class Action:
    """The action whose match is reported."""

    id: int
    name: str
    url: str
    tags: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Person:
    """The person of the event."""

    display: str
    url: str
    properties: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Notification:
    """One message about one event."""

    #: The same on every attempt: use it as an idempotency key.
    id: str
    attempt: int
    #: When it is too late to send, or None.
    expires_at: Optional[datetime]
    #: Overrides where the config sends to; "" is the config's. A user wrote it, not
    #: the operator.
    destination: str
    project: Project
    action: Action
    event: dict[str, Any]
    event_url: str
    person: Person
    #: The message as plain text and in parts. Neither is escaped: event data must not
    #: act as markup or as a command of the service.
    text: str
    segments: Sequence[Segment]
    template: str
    #: How many similar messages were left out before this one; the message should state it.
    suppressed: int
    test: bool

    def render(self, escape: Callable[[Segment], str]) -> str:
        """Join the segments, each through ``escape``."""
        return "".join(escape(s) for s in self.segments or [Segment(SegmentKind.TEXT, self.text)])


class NotifyOutcome(enum.IntEnum):
    """What became of a notification. UNSPECIFIED means that it is sent again."""

    UNSPECIFIED = 0
    DELIVERED = 1
    DUPLICATE = 2
    RETRY = 3
    DROPPED = 4


@dataclasses.dataclass(frozen=True)
class Rate:
    """What is left of a service's limit; ``scope`` is what the limit is for."""

    remaining: int
    reset_after: timedelta
    scope: str = ""


@dataclasses.dataclass(frozen=True)
class NotifyResult:
    """The answer to a notification: ``NotifyResult.delivered()``, or an exception."""

    outcome: NotifyOutcome = NotifyOutcome.UNSPECIFIED
    message_id: str = ""
    error: Optional[Exception] = None
    rate: Optional[Rate] = None

    @staticmethod
    def delivered(message_id: str = "", rate: Optional[Rate] = None) -> NotifyResult:
        """The service has the message."""
        return NotifyResult(NotifyOutcome.DELIVERED, message_id, rate=rate)


@dataclasses.dataclass(frozen=True)
class NotifierProperties:
    """How a notifier wants to be fed. The defaults are the weakest choice."""

    #: Notifications in one call; 0 leaves it to the server.
    max_items: int = 0
    #: How many ``notify`` calls may run at once.
    max_in_flight: int = 1
    #: The rate that the service allows; 0 is no limit.
    per_second: float = 0
    burst: int = 0
    per_destination: bool = False
    #: How long the SDK remembers what was delivered; zero means not at all.
    dedup_window: timedelta = timedelta(hours=1)
    max_text_bytes: int = 0
    #: "plain", "markdown", "segments".
    formats: Sequence[str] = ("segments",)


@dataclasses.dataclass(frozen=True)
class Preview:
    """What would be sent."""

    rendered: bytes
    media_type: str
    warnings: Sequence[str] = ()


class Notifier(Base):
    """Delivers messages. Implement ``preview`` as well to show what would be sent."""

    def open(self, request: OpenRequest) -> NotifierProperties:
        """Connect. ConfigError stops the instance; any other exception is tried again."""
        raise NotImplementedError

    def notify(self, notification: Notification) -> NotifyResult:
        """Deliver one message.

        Permanent and Unsupported drop it, any other exception is tried again until it
        expires. The SDK has dropped expired messages before, and answers for those that
        this process has delivered already.
        """
        raise NotImplementedError

    def preview(self, notification: Notification) -> Preview:
        """Return what would be sent, without any network. Optional."""
        raise NotImplementedError


def from_proto(m: notify_pb2.Notification) -> Notification:
    """Return a notification from its message."""
    segments = [
        Segment(SegmentKind(s.kind) if 0 < s.kind <= SegmentKind.USER else SegmentKind.TEXT, s.value, s.href)
        for s in m.segments
    ]
    return Notification(
        id=m.notification_id,
        attempt=m.attempt,
        expires_at=time_of(m.expires_us) if m.expires_us else None,
        destination=m.destination,
        project=Project(m.project.id, m.project.name, m.project.url),
        action=Action(m.action.id, m.action.name, m.action.url, tuple(m.action.tags)),
        event=json.loads(m.event_json) if m.event_json else {},
        event_url=m.event_url,
        person=Person(
            m.person.display, m.person.url, json.loads(m.person.properties_json) if m.person.properties_json else {}
        ),
        text=m.text,
        segments=segments,
        template=m.template,
        suppressed=m.suppressed,
        test=m.test,
    )
