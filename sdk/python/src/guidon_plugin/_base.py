"""What sinks, notifiers and matchers have in common."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, Optional

from guidon_plugin._log import InstanceLog, for_instance


@dataclasses.dataclass(frozen=True)
class OpenRequest:
    """Where delivery continues."""

    #: The name that the operator gave this instance.
    instance: str
    #: The highest sequence number that the server knows to be safe; 0 for none. What
    #: follows it is sent, perhaps again. Always 0 for notifiers and matchers.
    committed_through: int = 0


class Base:
    """One configured instance.

    Annotate ``config`` with a dataclass: ``config: MyConfig``. The SDK decodes the
    operator's config into it, strictly, before it calls ``open``. A value is opened
    once; after a lost session the SDK closes it, makes a new one and opens that.
    """

    #: The decoded config; set before ``validate`` and ``open``.
    config: Any
    #: The logger of this instance: its lines appear under the instance's name.
    log: InstanceLog

    def __init__(self) -> None:
        self.log = for_instance("")

    def validate(self) -> None:
        """Check what types cannot express; raise ConfigError. No network. Optional."""

    def check(self) -> None:
        """Try the real thing without leaving a trace; raise why it fails. Optional."""

    def metrics(self) -> str:
        """Return metrics of the instance as OpenMetrics text, from memory. Optional."""
        return ""

    def close(self) -> None:
        """Release what ``open`` took. Called once, also after an ``open`` that failed."""


def overrides(cls: type[Base], method: str) -> bool:
    """Report whether a class implements an optional method."""
    mine = getattr(cls, method, None)
    for base in cls.__mro__:
        if base.__module__.startswith("guidon_plugin.") and method in vars(base):
            return mine is not vars(base)[method]
    return mine is not None


def check_signatures(cls: type[Base]) -> Optional[str]:
    """Return which method cannot be called as the SDK calls it, or None."""
    for base in cls.__mro__:
        if not base.__module__.startswith("guidon_plugin."):
            continue
        for name, method in vars(base).items():
            mine = getattr(cls, name, None)
            if name.startswith("_") or not inspect.isfunction(method) or mine is method:
                continue
            want = inspect.signature(method)
            args = [None] * len(want.parameters)
            try:
                if not callable(mine) or inspect.iscoroutinefunction(mine):
                    raise TypeError
                inspect.signature(mine).bind(*args)
            except TypeError:
                return f"{cls.__name__}.{name} must be: def {name}{want}"
    return None
