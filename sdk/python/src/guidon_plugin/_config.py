"""The config of a plugin: a dataclass, its JSON Schema, and a strict decoder."""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import re
import typing
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, Callable, Optional, Union

from guidon_plugin._errors import ConfigError, ConfigErrors
from guidon_plugin._pb.guidon.plugin.v1 import plugin_pb2

_MISSING: Any = dataclasses.MISSING
_DURATION_PATTERN = r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$"
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
_DURATION_FORMS = "a duration such as 250ms, 5s, 1m30s or 24h"
_SIZE_PATTERN = r"^[0-9]+(\.[0-9]+)?([eE]\+?[0-9]{1,2})? *(([kKmMgGtTpP][iI]?)?[bB]|[kKmMgGtTpP][iI])?$"
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE]\+?[0-9]{1,2})?)\s*([A-Za-z]*)\s*")
_SIZE_FORMS = "a size such as 512KiB, 20MB or 2GiB, or a number of bytes"
_UNITS = {"ns": "0.001", "us": "1", "µs": "1", "ms": "1000", "s": "1000000", "m": "60000000", "h": "3600000000"}

Bound = Union[int, float, timedelta]


def option(
    default: Any = _MISSING,
    *,
    doc: str = "",
    secret: bool = False,
    enum: Sequence[str] = (),
    min: Optional[Bound] = None,  # noqa: A002
    max: Optional[Bound] = None,  # noqa: A002
    name: str = "",
    factory: Optional[Callable[[], Any]] = None,
) -> Any:
    """Declare an option of a config.

    An option without a default is required. ``doc`` says what it is and why to change
    it, ``enum`` lists the strings allowed, ``min`` and ``max`` bound a number or a
    duration, ``secret`` hides the value, ``name`` is the key where it differs from the
    name of the field. ``factory`` makes a default that is a list or a dict.
    """
    meta = {"doc": doc, "secret": secret, "enum": tuple(enum), "min": min, "max": max, "name": name}
    if factory is not None:
        return dataclasses.field(default_factory=factory, metadata={"guidon": meta})
    if default is _MISSING:
        return dataclasses.field(metadata={"guidon": meta})
    return dataclasses.field(default=default, metadata={"guidon": meta})


@dataclasses.dataclass
class NoConfig:
    """The config of a plugin without options."""


@dataclasses.dataclass(frozen=True)
class _Field:
    attribute: str
    name: str
    type: Any
    required: bool
    default: Callable[[], Any]
    doc: str = ""
    secret: bool = False
    enum: tuple[str, ...] = ()
    min: Optional[Bound] = None
    max: Optional[Bound] = None


def _fields(cls: Any) -> list[_Field]:
    hints = typing.get_type_hints(cls)
    out = []
    for f in dataclasses.fields(cls):
        if not f.init:
            continue
        meta = dict(f.metadata.get("guidon", {}))
        required = f.default is _MISSING and f.default_factory is _MISSING
        if f.default is not _MISSING:
            default = _constant(f.default)
        else:
            default = _constant(None) if required else typing.cast(Callable[[], Any], f.default_factory)
        name = meta.pop("name", "") or f.name
        out.append(_Field(f.name, name, hints[f.name], required, default, **meta))
    return out


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _optional(t: Any) -> Any:
    """Return T of Optional[T], and any other type as it is."""
    if typing.get_origin(t) in _UNIONS:
        rest = [a for a in typing.get_args(t) if a is not type(None)]
        if len(rest) == 1:
            return rest[0]
    return t


_UNIONS = {Union, getattr(__import__("types"), "UnionType", Union)}


def config_class(plugin: Any) -> Any:
    """Return the dataclass that a plugin's class annotates its ``config`` with."""
    try:
        hint = typing.get_type_hints(plugin).get("config", Any)
    except NameError as error:
        raise TypeError(f"{plugin.__name__}.config: {error}: define the config at the top level of a module") from None
    if hint is Any:
        return NoConfig
    if not dataclasses.is_dataclass(hint):
        raise TypeError(f"{plugin.__name__}.config is annotated with {hint!r}: want a dataclass")
    return hint


def schema(cls: Any) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a config."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_object_schema(cls)}


def _object_schema(cls: Any) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required = []
    for f in _fields(cls):
        s = _type_schema(f.type, f"{cls.__name__}.{f.attribute}")
        if f.doc:
            s["description"] = f.doc
        if f.enum:
            s["enum"] = list(f.enum)
        if is_size(f.name, f.type):
            s["type"], s["pattern"] = ["integer", "string"], _SIZE_PATTERN
        if _optional(f.type) is not timedelta:
            if f.min is not None:
                s["minimum"] = f.min
            if f.max is not None:
                s["maximum"] = f.max
        if f.secret:
            s["writeOnly"] = True
        elif not f.required and not dataclasses.is_dataclass(_optional(f.type)):
            default = plain(f.default())
            if default is not None:
                s["default"] = default
        properties[f.name] = s
        if f.required:
            required.append(f.name)
    out: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": properties}
    if required:
        out["required"] = required
    return out


def _type_schema(t: Any, where: str) -> dict[str, Any]:
    t = _optional(t)
    simple = {str: "string", bool: "boolean", int: "integer", float: "number"}
    if t in simple:
        return {"type": simple[t]}
    if t is Any:
        return {}
    if t is timedelta:
        return {"type": "string", "pattern": _DURATION_PATTERN}
    if dataclasses.is_dataclass(t):
        return _object_schema(t)
    origin, args = typing.get_origin(t), typing.get_args(t)
    if origin is list:
        return {"type": "array", "items": _type_schema(args[0], where)}
    if origin is dict and args[0] is str:
        return {"type": "object", "additionalProperties": _type_schema(args[1], where)}
    raise TypeError(f"config field {where} of type {t} cannot be configured")


def plain(value: Any) -> Any:
    """Return a value as an operator would write it."""
    if isinstance(value, timedelta):
        return format_duration(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.attribute)) for f in _fields(type(value)) if not f.secret}
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def defaults(cls: Any) -> dict[str, Any]:
    """Return the config with every default filled in, secrets left out."""
    out = {}
    for f in _fields(cls):
        if not f.secret and not f.required:
            value = plain(f.default())
            if value is not None:
                out[f.name] = value
    return out


def secret_pointers(cls: Any, at: str = "") -> list[str]:
    """Return the JSON Pointers of secrets; "*" stands for any key or index."""
    out = []
    for f in _fields(cls):
        place = f"{at}/{escape(f.name)}"
        if f.secret:
            out.append(place)
        out += _inner_secrets(f.type, place)
    return out


def _inner_secrets(t: Any, at: str) -> list[str]:
    t = _optional(t)
    if dataclasses.is_dataclass(t):
        return secret_pointers(t, at)
    args = typing.get_args(t)
    if typing.get_origin(t) in (list, dict) and args:
        return _inner_secrets(args[-1], at + "/*")
    return []


def escape(key: str) -> str:
    """Return a key as a part of a JSON Pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def parse_duration(text: str) -> Optional[timedelta]:
    """Return the duration of a text such as "1m30s", or None."""
    if not re.match(_DURATION_PATTERN, text):
        return None
    micros = sum(Decimal(n) * Decimal(_UNITS[unit]) for n, unit in _DURATION.findall(text))
    try:
        return timedelta(microseconds=float(micros))
    except OverflowError:
        return None


def is_size(name: str, t: Any) -> bool:
    """Report whether an option is a number of bytes, which may be written as a text."""
    return name.endswith("_bytes") and _optional(t) is int


def parse_size(text: str) -> Optional[int]:
    """Return the bytes of a text such as "64MiB", or None."""
    found = _SIZE.fullmatch(text)
    if not found or not re.match(_SIZE_PATTERN, text.strip()):
        return None
    unit = found[2].lower().removesuffix("b")
    base = 1024 if unit.endswith("i") else 1000
    n = Decimal(found[1]) * base ** (" kmgtp".index(unit[0]) if unit else 0)
    return int(n) if n == n.to_integral_value() and n < 1 << 63 else None


def format_duration(d: timedelta) -> str:
    """Return a duration as an operator writes it."""
    micros = round(d.total_seconds() * 1_000_000)
    if micros % 1_000_000:
        return f"{micros // 1000}ms" if micros % 1000 == 0 else f"{micros}us"
    seconds = micros // 1_000_000
    if seconds and seconds % 3600 == 0:
        return f"{seconds // 3600}h"
    return f"{seconds // 60}m" if seconds and seconds % 60 == 0 else f"{seconds}s"


class SecretText(str):
    """A string that came from a reference: it fills any scalar field and is never quoted."""


Diagnostics = list[plugin_pb2.Diagnostic]


def decode(cls: Any, config: plugin_pb2.Config) -> tuple[Any, Diagnostics]:
    """Decode an operator's config, strictly; return it, or None, and what is wrong with it."""
    decoder = _Decoder()
    try:
        tree = _tree(config)
    except ValueError as error:
        decoder.problem("", "the config is not a JSON object", str(error))
        return None, decoder.problems
    value = decoder.mapping("", tree, cls)
    return (None if decoder.problems else value), decoder.problems


def decode_config(cls: Any, text: Union[str, bytes]) -> Any:
    """Decode a config from JSON exactly as ``serve`` does, for tests of a plugin.

    It raises ConfigErrors, whose ``errors`` have a pointer each.
    """
    raw = text.encode() if isinstance(text, str) else text
    value, problems = decode(cls, plugin_pb2.Config(config_json=raw))
    if problems:
        raise ConfigErrors(*(ConfigError(f"{d.pointer}: {d.summary} {d.detail}", pointer=d.pointer) for d in problems))
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _tree(config: plugin_pb2.Config) -> dict[str, Any]:
    text = config.config_json.strip()
    tree = json.loads(text, parse_constant=_no_constant) if text else {}
    if tree is None:
        tree = {}
    if not isinstance(tree, dict):
        raise ValueError("it is of another kind")
    for pointer, value in config.secrets.items():
        _set_at(tree, pointer, SecretText(value.decode("utf-8", "replace")))
    return tree


def _set_at(tree: Any, pointer: str, value: Any) -> None:
    node = tree
    parts = [p.replace("~1", "/").replace("~0", "~") for p in pointer.split("/")[1:]]
    for i, key in enumerate(parts):
        last = i == len(parts) - 1
        if isinstance(node, dict):
            if last:
                node[key] = value
            node = node.get(key)
        elif isinstance(node, list) and key.isdigit() and int(key) < len(node):
            if last:
                node[int(key)] = value
            node = node[int(key)]
        else:
            raise ValueError(f"no such place: {pointer}")


class _Decoder:
    def __init__(self) -> None:
        self.problems: Diagnostics = []

    def problem(self, pointer: str, summary: str, detail: str = "") -> None:
        self.problems.append(
            plugin_pb2.Diagnostic(
                severity=plugin_pb2.Diagnostic.SEVERITY_ERROR, pointer=pointer, summary=summary, detail=detail
            )
        )

    def wrong(self, at: str, want: str, v: Any) -> None:
        got = "a value of another kind"
        if isinstance(v, SecretText):
            got = "a referenced value that is not one"
        elif isinstance(v, dict):
            got = "an object"
        elif isinstance(v, list):
            got = "a list"
        elif isinstance(v, (str, int, float)):
            got = json.dumps(v)
        self.problem(at, f"must be {want}", f"got {got}")

    def mapping(self, at: str, v: Any, cls: Any) -> Any:
        if not isinstance(v, dict):
            self.wrong(at, "an object", v)
            return None
        fields = {f.name: f for f in _fields(cls)}
        values: dict[str, Any] = {}
        for key in sorted(v):
            f = fields.get(key)
            if f is None:
                near = difflib.get_close_matches(key, fields, 1)
                self.problem(f"{at}/{escape(key)}", "unknown key", f'did you mean "{near[0]}"?' if near else "")
            elif v[key] is not None:
                values[f.attribute] = self.value(f"{at}/{escape(key)}", v[key], f.type, f)
        for f in fields.values():
            if f.attribute not in values:
                if f.required:
                    self.problem(f"{at}/{escape(f.name)}", "required", f.doc)
                    values[f.attribute] = None
                else:
                    values[f.attribute] = f.default()
        return cls(**values)

    def value(self, at: str, v: Any, t: Any, f: Optional[_Field] = None) -> Any:
        t = _optional(t)
        if t is Any:
            return v
        if v is None:
            self.wrong(at, "a value", v)
            return None
        if dataclasses.is_dataclass(t):
            return self.mapping(at, v, t)
        origin, args = typing.get_origin(t), typing.get_args(t)
        if origin is list:
            if not isinstance(v, list):
                return self.wrong(at, "a list", v)
            return [self.value(f"{at}/{i}", item, args[0]) for i, item in enumerate(v)]
        if origin is dict:
            if not isinstance(v, dict):
                return self.wrong(at, "an object", v)
            return {k: self.value(f"{at}/{escape(k)}", item, args[1]) for k, item in v.items()}
        return self.scalar(at, v, t, f)

    def scalar(self, at: str, v: Any, t: Any, f: Optional[_Field]) -> Any:
        out: Any = None
        if t is str:
            if isinstance(v, str):
                out = str(v)
                self.choice(at, v, f)
            else:
                self.wrong(at, "a string", v)
        elif t is timedelta:
            out = parse_duration(v) if isinstance(v, str) else None
            if out is None:
                self.wrong(at, _DURATION_FORMS, v)
        elif t is bool:
            out = self.boolean(at, v)
        elif f is not None and is_size(f.name, t) and isinstance(v, str):
            out = parse_size(v)
            if out is None:
                self.wrong(at, _SIZE_FORMS, v)
        else:
            out = self.number(at, v, t)
        if out is not None and t is not str and t is not bool:
            self.bounds(at, out, f)
        return out

    def boolean(self, at: str, v: Any) -> Optional[bool]:
        if isinstance(v, bool):
            return v
        if isinstance(v, SecretText) and v.lower() in ("true", "false", "1", "0"):
            return v.lower() in ("true", "1")
        self.wrong(at, "true or false", v)
        return None

    def number(self, at: str, v: Any, t: Any) -> Any:
        try:
            if isinstance(v, SecretText):
                v = json.loads(v, parse_constant=_no_constant)
            if isinstance(v, bool) or not isinstance(v, (int, float)) or (t is int and not isinstance(v, int)):
                raise ValueError
            out = t(v)
            if not math.isfinite(out):
                raise ValueError
        except (ValueError, OverflowError):
            self.wrong(at, "a whole number" if t is int else "a number", v)
            return None
        return out

    def bounds(self, at: str, v: Any, f: Optional[_Field]) -> None:
        if f is None:
            return
        if f.min is not None and v < f.min:
            self.problem(at, f"must be at least {plain(f.min)}")
        if f.max is not None and v > f.max:
            self.problem(at, f"must be at most {plain(f.max)}")

    def choice(self, at: str, v: str, f: Optional[_Field]) -> None:
        if f is not None and f.enum and v not in f.enum:
            detail = "" if isinstance(v, SecretText) else f"got {json.dumps(v)}"
            self.problem(at, "must be one of " + ", ".join(f.enum), detail)
