"""A sink that appends events to a file, one JSON object a line."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Optional

import guidon_plugin as guidon


@dataclass
class Config:
    path: str = guidon.option(doc="The file to append to.")


class Lines(guidon.Sink):
    config: Config
    _file: Optional[BinaryIO] = None

    def open(self, request: guidon.OpenRequest) -> guidon.SinkProperties:
        try:
            self._file = Path(self.config.path).open("a+b", buffering=0)
        except OSError as error:
            raise guidon.ConfigError(error.strerror or error, pointer="/path") from error
        with locked(self._file):
            cut_torn_line(self._file)
        return guidon.SinkProperties(ordering=guidon.Ordering.TOTAL, durability=guidon.Durability.LOCAL_DISK)

    def write(self, batch: guidon.Batch) -> guidon.WriteResult:
        assert self._file is not None
        with locked(self._file):
            begin = cut_torn_line(self._file)
            try:
                text = memoryview(batch.ndjson())
                while text:
                    text = text[self._file.write(text) :]
                os.fsync(self._file.fileno())
            except OSError:
                self._file.truncate(begin)  # the next attempt begins at the same place
                raise
        return batch.committed()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


@contextlib.contextmanager
def locked(file: BinaryIO) -> Iterator[None]:
    """Hold the lock of the file: during an upgrade two processes have it open."""
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def cut_torn_line(file: BinaryIO) -> int:
    """Remove the end of a line that a crash has cut: the server sends its batch again.

    Return the position behind the last line.
    """
    size = end = file.seek(0, os.SEEK_END)
    while end > 0:
        begin = max(0, end - 65536)
        file.seek(begin)
        newline = file.read(end - begin).rfind(b"\n")
        if newline >= 0:
            end = begin + newline + 1
            break
        end = begin
    if end < size:
        file.truncate(end)
    return end


plugin = guidon.Plugin(name="example/lines", version="0.1.0", summary="Appends events to a file.", sink=Lines)


def main() -> None:
    guidon.serve(plugin)


if __name__ == "__main__":
    main()
