"""Tests the matcher without a server."""

from __future__ import annotations

import unittest

import hours as plugin

import guidon_plugin as guidon
from guidon_plugin import testing


class HoursTest(unittest.TestCase):
    def test_examples_hold(self) -> None:
        with testing.opened(plugin.Hours) as matcher:
            testing.check_examples(matcher)

    def test_bounds(self) -> None:
        with testing.opened(plugin.Hours) as matcher:
            for time, want in (
                ("2026-01-31T08:59:59+00:00", guidon.Verdict.NO_MATCH),
                ("2026-01-31T09:00:00+00:00", guidon.Verdict.MATCH),
                ("2026-01-31T16:59:59+00:00", guidon.Verdict.MATCH),
                ("2026-01-31T17:00:00+00:00", guidon.Verdict.NO_MATCH),
                (17, guidon.Verdict.FAILED),
            ):
                got = testing.verdict(matcher, "hours/between", {"from": 9, "to": 17}, time)
                self.assertEqual(got, want, time)

    def test_refuses_values(self) -> None:
        with testing.opened(plugin.Hours) as matcher:
            with self.assertRaises(guidon.ValueRefused) as raised:
                testing.verdict(matcher, "hours/between", {"from": 17, "to": 9}, "")
            self.assertEqual(raised.exception.pointer, "/to")
            for value in ({"from": 9}, {"from": 9, "to": 25}, "9-17"):
                with self.subTest(value), self.assertRaises(guidon.ConfigErrors):
                    testing.verdict(matcher, "hours/between", value, "")


if __name__ == "__main__":
    unittest.main()
