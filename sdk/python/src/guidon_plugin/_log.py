"""The log: one JSON object per line on standard error, which the server reads."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from typing import Any

logger = logging.getLogger("guidon_plugin")

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
_STANDARD = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "taskName"}
LOG_LEVEL_KEY = "GUIDON_PLUGIN_LOG_LEVEL"


class JSONFormatter(logging.Formatter):
    """Writes the keys that the server reads: time, level, msg, instance, and fields."""

    def format(self, record: logging.LogRecord) -> str:
        level = "error" if record.levelno >= logging.ERROR else "warn" if record.levelno >= logging.WARNING else "info"
        if record.levelno < logging.INFO:
            level = "debug"
        out: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": level,
            "msg": record.getMessage(),
        }
        if record.name not in ("root", "guidon_plugin"):
            out["logger"] = record.name
        for key, value in vars(record).items():
            if key not in _STANDARD:
                out[key] = value
        if record.exc_info:
            out["stack"] = self.formatException(record.exc_info)
        return json.dumps(out, default=str)


def set_level(name: str) -> bool:
    """Set the level of everything that is logged from now on; report whether it is one."""
    level = _LEVELS.get(name.lower())
    if level is None:
        return False
    logging.getLogger().setLevel(level)
    return True


def set_up() -> None:
    """Send every logger of the process, warnings and failures of threads to the server."""
    handler = logging.StreamHandler(sys.__stderr__)
    handler.setFormatter(JSONFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    if not set_level(os.environ.get(LOG_LEVEL_KEY, "info")):
        set_level("info")
    logging.captureWarnings(True)

    def failed(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            info = (args.exc_type, args.exc_value, args.exc_traceback)
            logger.error("a thread ended with an exception", exc_info=info)

    threading.excepthook = failed


class InstanceLog(logging.LoggerAdapter):  # type: ignore[type-arg]
    """A logger that names the instance on every line. Keyword extras become fields."""

    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        extra = dict(self.extra or {})
        extra.update(kwargs.get("extra") or {})
        kwargs["extra"] = extra
        return msg, kwargs


def for_instance(name: str) -> InstanceLog:
    """Return the logger of an instance."""
    return InstanceLog(logger, {"instance": name} if name else {})
