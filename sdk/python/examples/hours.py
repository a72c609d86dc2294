"""A matcher with the operator hours/between: does a time of day lie between two hours?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import guidon_plugin as guidon


class Hours(guidon.Matcher):
    def operators(self) -> Sequence[guidon.Operator]:
        return [
            guidon.Operator(
                id="hours/between",
                label="is between hours",
                doc="The time is at or after the first hour and before the second one.",
                value_schema={
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["from", "to"],
                    "properties": {
                        "from": {"type": "integer", "minimum": 0, "maximum": 23},
                        "to": {"type": "integer", "minimum": 1, "maximum": 24},
                    },
                },
                property_types=["string"],
                purity=guidon.Purity.PURE,
                examples=[
                    guidon.Example({"from": 9, "to": 17}, "2026-01-31T12:30:00+00:00", guidon.Verdict.MATCH),
                    guidon.Example({"from": 9, "to": 17}, "2026-01-31T17:00:00+00:00", guidon.Verdict.NO_MATCH),
                    guidon.Example({"from": 9, "to": 17}, "tomorrow", guidon.Verdict.FAILED),
                ],
            )
        ]

    def compile(self, operator: str, value: Any) -> guidon.Match:
        begin, end = value["from"], value["to"]
        if begin >= end:
            raise guidon.ValueRefused(f"to ({end}) must be after from ({begin})", pointer="/to")

        def match(given: guidon.Input) -> bool | guidon.Verdict:
            text = given.string()
            if text is None:
                return guidon.Verdict.FAILED
            try:
                at = datetime.fromisoformat(text)
            except ValueError:
                return guidon.Verdict.FAILED
            return bool(begin <= at.hour < end)

        return match


plugin = guidon.Plugin(name="example/hours", version="0.1.0", summary="Matches times of day.", matcher=Hours)


def main() -> None:
    guidon.serve(plugin)


if __name__ == "__main__":
    main()
