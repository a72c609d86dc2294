"""Matchers add operators to property filters."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Callable, Optional, Union

from guidon_plugin._base import Base, OpenRequest
from guidon_plugin._pb.guidon.match.v1 import match_pb2

_UNSET: Any = object()


class Verdict(enum.IntEnum):
    """The result of a program. UNKNOWN is never an answer."""

    UNKNOWN = 0
    NO_MATCH = 1
    MATCH = 2
    FAILED = 3


class Missing(enum.IntEnum):
    """What a property that is not there means."""

    FAILS = 1
    NO_MATCH = 2
    MATCHES = 3


class Purity(enum.IntEnum):
    """What a result depends on beside the two values."""

    VOLATILE = 1
    PURE = 2
    TIME = 3
    DATA = 4


class Input:
    """What a program looks at."""

    __slots__ = ("raw", "now", "_value")

    def __init__(self, raw: bytes, now: datetime) -> None:
        #: The property's value as JSON.
        self.raw = raw
        #: The time of the evaluation, for operators of Purity.TIME.
        self.now = now
        self._value = _UNSET

    @property
    def value(self) -> Any:
        """The property's value, decoded; for a program that reads several, a dict."""
        if self._value is _UNSET:
            self._value = json.loads(self.raw)
        return self._value

    def string(self) -> Optional[str]:
        """The value when it is a string, otherwise None."""
        return self.value if isinstance(self.value, str) else None

    def number(self) -> Optional[float]:
        """The value when it is a number, otherwise None."""
        v = self.value
        return v if isinstance(v, (int, float)) and not isinstance(v, bool) else None

    def property(self, name: str) -> Any:
        """One of the properties that the program reads, or None."""
        return self.value.get(name) if isinstance(self.value, dict) else None


Match = Callable[[Input], Union[bool, Verdict]]


@dataclasses.dataclass(frozen=True)
class Program:
    """A compiled filter value that reads several properties instead of the filter's own."""

    match: Match
    reads: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Example:
    """A true statement about an operator; ``value`` and ``property`` are plain values."""

    value: Any
    property: Any
    result: Verdict
    now: Optional[datetime] = None


@dataclasses.dataclass(frozen=True)
class Operator:
    """One way to test a property."""

    #: Lower case with one slash: "cidr/contains".
    id: str
    #: Changes when the same value gives different results.
    version: str = ""
    label: str = ""
    doc: str = ""
    #: The JSON Schema (draft 2020-12) of the filter's value; None takes anything. The
    #: SDK refuses other values before it calls ``compile``.
    value_schema: Optional[dict[str, Any]] = None
    property_types: Sequence[str] = ()
    missing: Missing = Missing.FAILS
    purity: Purity = Purity.VOLATILE
    cache_ttl: timedelta = timedelta(0)
    cost: timedelta = timedelta(0)
    cel: str = ""
    #: Documentation that is tested: at least one that matches and one that does not.
    examples: Sequence[Example] = ()


@dataclasses.dataclass(frozen=True)
class MatcherProperties:
    """How a matcher wants to be fed."""

    max_in_flight: int = 4


class Matcher(Base):
    """Adds operators. ``compile`` and its programs run in several threads and must not block."""

    def open(self, request: OpenRequest) -> MatcherProperties:
        """Load what the operators need."""
        return MatcherProperties()

    def operators(self) -> Sequence[Operator]:
        """Return the operators; called after ``open``, and the same until ``close``."""
        raise NotImplementedError

    def compile(self, operator: str, value: Any) -> Union[Match, Program]:
        """Return a function that tests a property. Raise ValueRefused to refuse the value."""
        raise NotImplementedError

    def data_version(self) -> str:
        """Return the version of the data that operators of Purity.DATA look at. Optional."""
        return ""


def operator_to_proto(o: Operator) -> match_pb2.Operator:
    """Return the message of an operator."""
    out = match_pb2.Operator(
        id=o.id,
        version=o.version,
        label=o.label,
        doc=o.doc,
        value_schema=b"" if o.value_schema is None else json.dumps(o.value_schema).encode(),
        property_types=list(o.property_types),
        missing=int(o.missing),  # type: ignore[arg-type]
        purity=int(o.purity),  # type: ignore[arg-type]
        cost_ns=int(o.cost.total_seconds() * 1e9),
        equivalent_cel=o.cel,
    )
    out.cache_ttl.FromTimedelta(o.cache_ttl)
    for e in o.examples:
        out.examples.add(
            value_json=json.dumps(e.value).encode(),
            property_json=json.dumps(e.property).encode(),
            result=int(e.result),
            now_us=int(e.now.timestamp() * 1_000_000) if e.now else 0,
        )
    return out
