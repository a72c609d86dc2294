"""The description of the program to serve."""

from __future__ import annotations

import dataclasses
import re
from typing import Optional

from guidon_plugin import _config
from guidon_plugin._base import Base, check_signatures, overrides
from guidon_plugin._errors import Unsupported
from guidon_plugin._matcher import Matcher
from guidon_plugin._notifier import Notifier
from guidon_plugin._pb.guidon.plugin.v1 import plugin_pb2
from guidon_plugin._sink import Sink

_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?(/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)?")
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?")

KIND_NAMES = {plugin_pb2.KIND_SINK: "sink", plugin_pb2.KIND_NOTIFIER: "notifier", plugin_pb2.KIND_MATCHER: "matcher"}


@dataclasses.dataclass(frozen=True)
class Plugin:
    """What ``serve`` serves: one class, or one for each kind."""

    #: Stable and lower case; a third party puts its own name first: "acme/warehouse".
    name: str
    #: Semantic: "1.4.2".
    version: str
    #: One sentence for the operator.
    summary: str = ""
    sink: Optional[type[Sink]] = None
    notifier: Optional[type[Notifier]] = None
    matcher: Optional[type[Matcher]] = None
    #: Two processes must never serve the same instance, not even during an upgrade.
    exclusive: bool = False
    #: A process can serve one instance only.
    single_instance: bool = False

    def kinds(self) -> dict[int, type[Base]]:
        """Return the classes by kind."""
        offered: dict[int, Optional[type[Base]]] = {
            plugin_pb2.KIND_SINK: self.sink,
            plugin_pb2.KIND_NOTIFIER: self.notifier,
            plugin_pb2.KIND_MATCHER: self.matcher,
        }
        return {kind: cls for kind, cls in offered.items() if cls is not None}

    def kind(self, number: int) -> tuple[int, type[Base]]:
        """Return the requested kind and its class; unspecified means the first."""
        for kind, cls in self.kinds().items():
            if number in (plugin_pb2.KIND_UNSPECIFIED, kind):
                return kind, cls
        raise Unsupported(f"the plugin {self.name} is not of that kind", code="kind_not_offered")

    def features(self) -> list[str]:
        """Return the optional methods that the classes implement."""
        out = ["plugin/metrics/v1", "plugin/log_level/v1"]
        optional = {"check": "check/v1", "flush": "flush/v1", "preview": "preview/v1", "metrics": "metrics/v1"}
        for kind, cls in self.kinds().items():
            for method, feature in optional.items():
                if hasattr(cls, method) and overrides(cls, method):
                    out.append(f"{KIND_NAMES[kind]}/{feature}")  # type: ignore[index]
        return out

    def mistake(self) -> Optional[str]:
        """Return the author's mistake, or None."""
        if not _NAME.fullmatch(self.name):
            return f"plugin name {self.name!r}: want lower case, at most one slash"
        if not _VERSION.fullmatch(self.version):
            return f"plugin {self.name}: version {self.version!r} is not semantic (1.2.3)"
        if not self.kinds():
            return f"plugin {self.name} offers nothing: set sink, notifier or matcher"
        for cls in self.kinds().values():
            wrong = check_signatures(cls)
            if wrong:
                return wrong
            try:
                _config.schema(_config.config_class(cls))
            except TypeError as error:
                return str(error)
        return None
