"""Standard output carries the handshake line only.

Importing the package in a process that the server started moves the pipe to the
server to another descriptor and points descriptor 1 at standard error. What the
program, a C library or a child process prints is then part of the log.
"""

from __future__ import annotations

import os
from typing import Optional

COOKIE_KEY = "GUIDON_PLUGIN_COOKIE"
COOKIE_VALUE = "3f1b7c52-guidon-plugin"

_pipe: Optional[int] = None


def started_by_host() -> bool:
    """Report whether the server, or the conformance kit, started this process."""
    return os.environ.get(COOKIE_KEY) == COOKIE_VALUE


def claim() -> None:
    """Keep standard output for the handshake line."""
    global _pipe
    if _pipe is None and started_by_host():
        try:
            _pipe = os.dup(1)
            os.dup2(2, 1)
        except OSError:
            _pipe = None


def handshake(line: str) -> None:
    """Print the handshake line to the host."""
    text = (line + "\n").encode()
    while text:
        text = text[os.write(1 if _pipe is None else _pipe, text) :]


claim()
