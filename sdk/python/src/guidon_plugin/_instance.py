"""One configured instance of any kind."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Callable, Optional, TypeVar

import grpc

from guidon_plugin import _config
from guidon_plugin._base import Base
from guidon_plugin._errors import (
    ConfigError,
    ConfigErrors,
    Internal,
    NotConnected,
    PluginError,
    Source,
    Transient,
    as_error,
    is_mistake,
    to_proto,
)
from guidon_plugin._log import for_instance
from guidon_plugin._notifier import NotifyOutcome, NotifyResult
from guidon_plugin._pb.guidon.plugin.v1 import plugin_pb2

T = TypeVar("T")
STATUS = plugin_pb2.InstanceHealth


class SharedLock:
    """Held by many calls, or by one that opens or closes. Those that wait to open go first."""

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._shared = 0
        self._waiting = 0
        self._alone = False

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        with self._turn:
            self._turn.wait_for(lambda: not self._alone and not self._waiting)
            self._shared += 1
        try:
            yield
        finally:
            with self._turn:
                self._shared -= 1
                self._turn.notify_all()

    @contextlib.contextmanager
    def alone(self, timeout: Optional[float]) -> Iterator[None]:
        with self._turn:
            self._waiting += 1
            try:
                free = self._turn.wait_for(lambda: not self._alone and not self._shared, timeout)
                self._alone = free
            finally:
                self._waiting -= 1
                self._turn.notify_all()
        if not free:
            raise Transient("earlier calls are still running", code="busy", source=Source.PLUGIN)
        try:
            yield
        finally:
            with self._turn:
                self._alone = False
                self._turn.notify_all()


class SentMemory:
    """Knows which notifications were delivered, so that a repetition posts nothing."""

    _MOST = 10_000

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._under_way: set[str] = set()
        self._sent: OrderedDict[str, tuple[float, str]] = OrderedDict()
        self.window = 0.0

    def begin(self, id: str, timeout: Optional[float]) -> Optional[NotifyResult]:  # noqa: A002
        """Return what became of a notification before, or None: it has to be delivered."""
        with self._turn:
            if not self.window or not id:
                return None
            if not self._turn.wait_for(lambda: id not in self._under_way, timeout):
                error = Transient("an earlier delivery is still running", code="busy", source=Source.PLUGIN)
                return NotifyResult(NotifyOutcome.RETRY, error=error)
            known = self._sent.get(id)
            if known is not None and time.monotonic() - known[0] <= self.window:
                return NotifyResult(NotifyOutcome.DUPLICATE, known[1])
            self._under_way.add(id)
            return None

    def end(self, id: str, result: Optional[NotifyResult]) -> None:  # noqa: A002
        """Record the result of a delivery; None is a failure."""
        with self._turn:
            if id in self._under_way:
                self._under_way.discard(id)
                if result is not None and result.outcome in (NotifyOutcome.DELIVERED, NotifyOutcome.DUPLICATE):
                    self._sent[id] = (time.monotonic(), result.message_id)
                    self._sent.move_to_end(id)
                    while len(self._sent) > self._MOST:
                        self._sent.popitem(last=False)
            self._turn.notify_all()


def remaining(context: grpc.ServicerContext) -> Optional[float]:
    """Return the seconds until the deadline of a call, None without one."""
    left: Optional[float] = context.time_remaining()
    return None if left is None else max(0.0, left)


class Instance:
    """Keeps the config, the author's value and the state of one instance."""

    def __init__(self, id: str, kind: int, cls: type[Base]) -> None:  # noqa: A002
        self.id = id
        self.kind = kind
        self.cls = cls
        self.sent = SentMemory()
        self.extra: Any = None  # what a kind keeps beside the value
        self.generation = 0
        self._use = SharedLock()
        self._config: Optional[plugin_pb2.Config] = None
        self._value: Optional[Base] = None
        self._slots = threading.Semaphore(1)
        self._state = threading.Lock()
        self._status: plugin_pb2.InstanceHealth.Status = STATUS.STATUS_STARTING
        self._since = time.time()
        self._error: Optional[PluginError] = None

    def _enter(self, status: plugin_pb2.InstanceHealth.Status, error: Optional[PluginError] = None) -> None:
        with self._state:
            if status != self._status:
                self._status, self._since = status, time.time()
            self._error = error

    def health(self, draining: bool) -> plugin_pb2.InstanceHealth:
        """Return the state, from memory."""
        with self._state:
            return plugin_pb2.InstanceHealth(
                instance_id=self.id,
                status=STATUS.STATUS_DRAINING if draining else self._status,
                error=to_proto(self._error),
                since_us=int(self._since * 1_000_000),
                generation=self.generation,
            )

    def build(self, config: plugin_pb2.Config) -> tuple[Optional[Base], list[plugin_pb2.Diagnostic]]:
        """Make a value with a config; without one, what is wrong with the config."""
        decoded, problems = _config.decode(_config.config_class(self.cls), config)
        if problems:
            return None, problems
        value = self.cls()
        value.config, value.log = decoded, for_instance(self.id)
        try:
            value.validate()
        except ConfigErrors as error:
            return None, [diagnostic(e) for e in error.errors]
        except Exception as error:
            if is_mistake(error) and not isinstance(error, ValueError):
                value.log.exception("validate failed")
            return None, [diagnostic(as_error(error))]
        return value, []

    def refuses(self, request: plugin_pb2.ConfigureRequest) -> Optional[PluginError]:
        """Return why a Configure is refused, or None."""
        if request.kind and request.kind != self.kind:
            return Internal("the instance is of another kind", code="wrong_kind")
        if request.generation < self.generation:
            return Internal(f"generation {request.generation} is older than {self.generation}", code="old_generation")
        return None

    def reconfigure(self, request: plugin_pb2.ConfigureRequest, timeout: Optional[float]) -> None:
        """Keep a config. An open value is closed and waits for the next Open."""
        if self._config is not None and request.generation == self.generation and request.config == self._config:
            return
        with self._use.alone(timeout):
            self._close()
            self._config = request.config
            self.generation = request.generation

    def open(self, timeout: Optional[float], connect: Callable[[Any], int]) -> None:
        """Open a new value; ``connect`` returns how many calls of it may run at once."""
        with self._use.alone(timeout):
            self._close()
            value, problems = self.build(self._config or plugin_pb2.Config())
            if value is None:
                raise ConfigError(problems[0].summary, pointer=problems[0].pointer)
            try:
                slots = connect(value)
            except Exception as error:
                failure = as_error(error)
                self._enter(STATUS.STATUS_FAILED, failure)
                self._release(value)
                raise
            self._slots = threading.Semaphore(max(1, slots))
            self._value = value
            self._enter(STATUS.STATUS_READY)

    @contextlib.contextmanager
    def opened(self) -> Iterator[Any]:
        """Hold the open value, however many calls are under way."""
        with self._use.shared():
            if self._value is None:
                raise NotConnected("the instance is not open", code="not_open", source=Source.PLUGIN)
            yield self._value

    @contextlib.contextmanager
    def slot(self, timeout: Optional[float]) -> Iterator[None]:
        """Wait for the turn of one call of the value."""
        slots = self._slots
        if not slots.acquire(timeout=timeout):
            raise Transient("earlier calls are still running", code="busy", source=Source.PLUGIN)
        try:
            yield
        finally:
            slots.release()

    @contextlib.contextmanager
    def work(self, timeout: Optional[float]) -> Iterator[Any]:
        """Hold the open value for one call of it."""
        with self.opened() as value, self.slot(timeout):
            yield value

    def metrics(self) -> str:
        """Return the metrics of the open value; "" without one."""
        value = self._value
        return "" if value is None else value.metrics()

    def close(self, timeout: Optional[float]) -> None:
        """Release the value."""
        with self._use.alone(timeout):
            self._close()

    def _close(self) -> None:
        value, self._value, self.extra = self._value, None, None
        if value is not None:
            self._enter(STATUS.STATUS_STARTING)
            self._release(value)

    @staticmethod
    def _release(value: Base) -> None:
        try:
            value.close()
        except Exception:
            value.log.exception("close failed")


def diagnostic(error: PluginError) -> plugin_pb2.Diagnostic:
    """Return an error as a remark about a config or a value."""
    return plugin_pb2.Diagnostic(
        severity=plugin_pb2.Diagnostic.SEVERITY_ERROR, pointer=error.pointer, summary=error.message
    )
