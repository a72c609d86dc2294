"""The config: schema, strict decoding, secrets."""

from __future__ import annotations

import unittest
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Optional

import guidon_plugin as guidon
from guidon_plugin import _config
from guidon_plugin._pb.guidon.plugin.v1 import plugin_pb2


@dataclass
class Auth:
    user: str = guidon.option("", doc="The user.")
    password: str = guidon.option("", secret=True)


@dataclass
class Config:
    path: str = guidon.option(doc="The file.")
    mode: str = guidon.option("append", enum=("append", "replace"))
    size: int = guidon.option(10, min=1, max=100)
    ratio: float = 0.5
    wait: timedelta = guidon.option(timedelta(seconds=5), min=timedelta(seconds=1))
    on: bool = False
    hosts: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    auth: Auth = field(default_factory=Auth)
    others: list[Auth] = field(default_factory=list)
    note: Optional[str] = None


def decode(text: str, **secrets: bytes) -> tuple[Any, dict[str, str]]:
    config = plugin_pb2.Config(config_json=text.encode(), secrets={k.replace("_", "/"): v for k, v in secrets.items()})
    value, problems = _config.decode(Config, config)
    return value, {d.pointer: d.summary + (f" ({d.detail})" if d.detail else "") for d in problems}


class Decoding(unittest.TestCase):
    def test_defaults(self) -> None:
        value, problems = decode('{"path": "x"}')
        self.assertEqual(problems, {})
        self.assertEqual(value, Config(path="x"))

    def test_values(self) -> None:
        value, problems = decode(
            '{"path": "x", "size": 7, "wait": "1m30.5s", "on": true, "ratio": 2, "hosts": ["a"],'
            ' "headers": {"A": "b"}, "auth": {"user": "u"}, "others": [{"user": "v"}], "note": null}'
        )
        self.assertEqual(problems, {})
        self.assertEqual((value.size, value.wait, value.on, value.ratio), (7, timedelta(seconds=90.5), True, 2.0))
        self.assertEqual((value.hosts, value.headers, value.auth.user), (["a"], {"A": "b"}, "u"))
        self.assertEqual(value.others, [Auth(user="v")])

    def test_mistakes_have_pointers(self) -> None:
        for text, want in {
            "{}": {"/path": "required (The file.)"},
            "[]": {"": "the config is not a JSON object (it is of another kind)"},
            '{"path": "x", "sise": 1}': {"/sise": 'unknown key (did you mean "size"?)'},
            '{"path": 1}': {"/path": "must be a string (got 1)"},
            '{"path": "x", "size": 0}': {"/size": "must be at least 1"},
            '{"path": "x", "size": 1.5}': {"/size": "must be a whole number (got 1.5)"},
            '{"path": "x", "size": true}': {"/size": "must be a whole number (got true)"},
            '{"path": "x", "wait": "soon"}': {
                "/wait": 'must be a duration such as 250ms, 5s, 1m30s or 24h (got "soon")'
            },
            '{"path": "x", "wait": "10ms"}': {"/wait": "must be at least 1s"},
            '{"path": "x", "mode": "add"}': {"/mode": 'must be one of append, replace (got "add")'},
            '{"path": "x", "hosts": ["a", 2]}': {"/hosts/1": "must be a string (got 2)"},
            '{"path": "x", "auth": {"pass/word": 1}}': {"/auth/pass~1word": 'unknown key (did you mean "password"?)'},
        }.items():
            with self.subTest(text):
                self.assertEqual(decode(text)[1], want)

    def test_not_json(self) -> None:
        for text in ('{"path": "x"} {}', '{"path": NaN}', "{"):
            self.assertIn("", decode(text)[1])

    def test_secrets_fill_scalars_and_are_never_quoted(self) -> None:
        value, problems = decode(
            '{"path": "***", "size": "***", "wait": "***", "on": "***", "auth": {"password": "***"}}',
            _path=b"p", _size=b"12", _wait=b"2s", _on=b"true", _auth_password=b"hunter2",
        )  # fmt: skip
        self.assertEqual(problems, {})
        self.assertEqual((value.path, value.size, value.on, value.auth.password), ("p", 12, True, "hunter2"))
        for key in ("size", "wait", "on", "mode"):
            problems = decode(f'{{"path": "x", "{key}": "***"}}', **{"_" + key: b"hunter2"})[1]
            self.assertIn("/" + key, problems)
            self.assertNotIn("hunter2", str(problems))

    def test_decode_config_raises(self) -> None:
        with self.assertRaises(guidon.ConfigErrors) as raised:
            guidon.decode_config(Config, '{"size": 0}')
        self.assertEqual({e.pointer for e in raised.exception.errors}, {"/path", "/size"})


@dataclass
class Sizes:
    limit_bytes: int = guidon.option(100, min=1, max=1 << 30)


class SizesInWords(unittest.TestCase):
    def read(self, text: str, **secrets: bytes) -> tuple[Any, dict[str, str]]:
        config = plugin_pb2.Config(config_json=text.encode(), secrets={"/" + k: v for k, v in secrets.items()})
        value, problems = _config.decode(Sizes, config)
        return value, {d.pointer: f"{d.summary} {d.detail}" for d in problems}

    def test_sizes(self) -> None:
        sizes = {"64MiB": 64 << 20, "10 MB": 10_000_000, "1.5kib": 1536, "512Ki": 512 << 10, "7b": 7, "1e3": 1000}
        for text, want in sizes.items():
            value, problems = self.read(f'{{"limit_bytes": "{text}"}}')
            self.assertEqual((problems, value and value.limit_bytes), ({}, want))
        self.assertEqual(self.read('{"limit_bytes": 7}')[0].limit_bytes, 7)
        self.assertEqual(self.read('{"limit_bytes": "*"}', limit_bytes=b"1MiB")[0].limit_bytes, 1 << 20)

    def test_wrong_sizes(self) -> None:
        for text in ('"64K"', '"lots"', '"1.5"', '"-1"', '""'):
            problems = self.read(f'{{"limit_bytes": {text}}}')[1]
            self.assertIn("must be a size such as 512KiB, 20MB", problems["/limit_bytes"])
        self.assertIn("at most", self.read('{"limit_bytes": "2GiB"}')[1]["/limit_bytes"])
        self.assertNotIn("hunter2", str(self.read('{"limit_bytes": "*"}', limit_bytes=b"hunter2")[1]))

    def test_schema(self) -> None:
        p = _config.schema(Sizes)["properties"]["limit_bytes"]
        self.assertEqual((p["type"], p["minimum"]), (["integer", "string"], 1))


class Schema(unittest.TestCase):
    def test_schema(self) -> None:
        s = _config.schema(Config)
        self.assertEqual(s["required"], ["path"])
        self.assertFalse(s["additionalProperties"])
        p = s["properties"]
        self.assertEqual(p["size"], {"type": "integer", "minimum": 1, "maximum": 100, "default": 10})
        self.assertEqual(p["wait"]["default"], "5s")
        self.assertEqual(p["auth"]["properties"]["password"], {"type": "string", "writeOnly": True})
        self.assertEqual(_config.secret_pointers(Config), ["/auth/password", "/others/*/password"])
        self.assertNotIn("password", str(_config.defaults(Config)))

    def test_a_type_that_cannot_be_configured(self) -> None:
        @dataclass
        class Bad:
            when: complex = 1j

        Bad.__annotations__["when"] = complex
        with self.assertRaisesRegex(TypeError, r"Bad\.when"):
            _config.schema(Bad)


if __name__ == "__main__":
    unittest.main()
