"""Errors with a class, which decides what the server does next."""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import Optional

from guidon_plugin._pb.guidon.plugin.v1 import plugin_pb2


class Source(enum.IntEnum):
    """The side that caused an error, for alerts to the right team."""

    UNKNOWN = 0
    PLUGIN = 1
    DOWNSTREAM = 2


class PluginError(Exception):
    """A failure as the server and the operator see it.

    Raise one of the subclasses. ``message`` is one sentence for the operator, without
    secrets; ``code`` is a stable identifier in snake_case.
    """

    _class = plugin_pb2.Error.CLASS_TRANSIENT
    _code = "transient"
    _source = Source.DOWNSTREAM

    def __init__(
        self,
        message: object = "",
        *,
        code: str = "",
        pointer: str = "",
        retry_after: Optional[timedelta] = None,
        source: Optional[Source] = None,
    ) -> None:
        super().__init__(str(message))
        self.message = str(message)
        self.code = code or self._code
        self.pointer = pointer
        self.retry_after = retry_after
        self.source = self._source if source is None else source

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code


class Transient(PluginError):
    """A retry may succeed: the server retries with growing delays."""


class Throttled(PluginError):
    """Too many requests: the server pauses for ``retry_after`` and sends less at a time."""

    _class = plugin_pb2.Error.CLASS_THROTTLED
    _code = "throttled"


class Permanent(PluginError):
    """A retry cannot succeed: the event becomes a dead letter, the message is dropped."""

    _class = plugin_pb2.Error.CLASS_PERMANENT
    _code = "permanent"


class NotConnected(PluginError):
    """The session is lost: the server calls ``open`` again, then retries."""

    _class = plugin_pb2.Error.CLASS_NOT_CONNECTED
    _code = "not_connected"


class ConfigError(PluginError):
    """Only the operator can fix it; ``pointer`` is the JSON Pointer of the field."""

    _class = plugin_pb2.Error.CLASS_CONFIG
    _code = "config"
    _source = Source.PLUGIN


class ConfigErrors(ConfigError):
    """Several errors of one config."""

    def __init__(self, *errors: ConfigError) -> None:
        super().__init__("; ".join(str(e) for e in errors), pointer=errors[0].pointer if errors else "")
        self.errors = errors


class ValueRefused(ConfigError):
    """The value of a filter is refused; ``pointer`` is the place in the value."""

    _code = "value"


class Unsupported(PluginError):
    """The plugin does not support it, and never will."""

    _class = plugin_pb2.Error.CLASS_UNSUPPORTED
    _code = "unsupported"
    _source = Source.PLUGIN


class Internal(PluginError):
    """A bug in the plugin: retried a few times, then handled as Permanent."""

    _class = plugin_pb2.Error.CLASS_INTERNAL
    _code = "internal"
    _source = Source.PLUGIN


# What Python raises for a mistake in a program, or for data that the program did not
# expect. Everything else is an unknown failure, which must not lose events.
_MISTAKES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)


def is_mistake(error: BaseException) -> bool:
    """Report whether an exception is a bug rather than a failure of the work."""
    return isinstance(error, _MISTAKES) and not isinstance(error, (PluginError, OSError))


def as_error(error: BaseException) -> PluginError:
    """Return any exception as a PluginError.

    Time-outs and errors of the operating system and the network are Transient, a
    mistake of the program (TypeError, KeyError, ValueError ...) is Internal, and
    everything else is Transient.
    """
    if isinstance(error, PluginError):
        return error
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    out: PluginError
    if isinstance(error, TimeoutError):
        out = Transient(text, code="deadline_exceeded")
    elif isinstance(error, OSError):
        out = Transient(text, code="network" if isinstance(error, ConnectionError) else "error")
    elif is_mistake(error):
        out = Internal(text, code="exception")
    else:
        out = Transient(text, code="error", source=Source.UNKNOWN)
    out.__cause__ = error
    return out


def to_proto(error: Optional[BaseException]) -> Optional[plugin_pb2.Error]:
    """Return the message of an error; None stays None."""
    if error is None:
        return None
    e = as_error(error)
    out = plugin_pb2.Error(code=e.code, message=e.message[:4000], pointer=e.pointer)
    setattr(out, "class", e._class)
    out.source = int(e.source)  # type: ignore[assignment]
    if e.retry_after is not None and e.retry_after > timedelta(0):
        out.retry_after.FromTimedelta(e.retry_after)
    return out
