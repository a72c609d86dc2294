"""Tests the sink without a server."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

import lines as plugin

import guidon_plugin as guidon
from guidon_plugin import testing


class LinesTest(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name, "events.ndjson")
        self.config = {"path": str(self.path)}

    def test_stores_events_in_order(self) -> None:
        first = testing.batch(testing.event("a"), testing.event("b"))
        second = testing.batch(testing.event("c", properties={"price": 12.5}), first_seq=3)
        with testing.opened(plugin.Lines, self.config) as sink:
            for batch in (first, second):
                result = sink.write(batch)
                self.assertEqual(result.outcome, guidon.Outcome.COMMITTED)
                self.assertEqual(result.committed_through, batch.last_seq)
        self.assertEqual(self.path.read_bytes(), first.ndjson() + second.ndjson())

    def test_cuts_a_line_that_a_crash_has_torn(self) -> None:
        self.path.write_bytes(b'{"event":"whole"}\n{"event":"to')
        batch = testing.batch(testing.event("torn"))
        with testing.opened(plugin.Lines, self.config) as sink:
            sink.write(batch)
        self.assertEqual(self.path.read_bytes(), b'{"event":"whole"}\n' + batch.ndjson())

    def test_two_processes_append_during_an_upgrade(self) -> None:
        first, second = (testing.batch(testing.event("a" * n)) for n in (1, 2))
        with testing.opened(plugin.Lines, self.config) as old, testing.opened(plugin.Lines, self.config) as new:
            old.write(first)
            with self.path.open("ab") as file:
                file.write(b'{"event":"killed in a wri')
            new.write(second)
        self.assertEqual(self.path.read_bytes(), first.ndjson() + second.ndjson())

    def test_refuses_a_path_that_it_cannot_open(self) -> None:
        directory = {"path": str(self.path.parent)}
        with self.assertRaises(guidon.ConfigError) as raised, testing.opened(plugin.Lines, directory):
            self.fail("opened a directory")
        self.assertEqual(raised.exception.pointer, "/path")

    def test_refuses_a_config_without_a_path(self) -> None:
        with self.assertRaises(guidon.ConfigErrors):
            testing.configured(plugin.Lines, {})


if __name__ == "__main__":
    unittest.main()
