"""A sink that appends events to a file, one JSON object a line."""

from __future__ import annotations

import os
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
        self._cut_torn_line(self._file)
        return guidon.SinkProperties(ordering=guidon.Ordering.TOTAL, durability=guidon.Durability.LOCAL_DISK)

    @staticmethod
    def _cut_torn_line(file: BinaryIO) -> None:
        """Remove the end of a line that a crash has cut: the server sends its batch again."""
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

    def write(self, batch: guidon.Batch) -> guidon.WriteResult:
        assert self._file is not None
        begin = self._file.seek(0, os.SEEK_END)
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


plugin = guidon.Plugin(name="example/lines", version="0.1.0", summary="Appends events to a file.", sink=Lines)


def main() -> None:
    guidon.serve(plugin)


if __name__ == "__main__":
    main()
