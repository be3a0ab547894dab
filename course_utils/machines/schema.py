"""Frozen dataclasses as JSON: their annotations say what a file may hold, when it is read and when it is written.

A mapping by size stands there as a list of rows, [B, D, K, seconds].
"""

import datetime
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import reduce
from operator import or_
from types import NoneType
from typing import get_args, get_origin, get_type_hints

from course_utils.quantities import Number

Size = tuple[int, int, int]  # (B, D, K)
Path = tuple[str | int, ...]  # to a value: the names of fields, and places in lists
NAMES_IN_FILES = {"seconds_by_size": "products"}
SHOWN = 60  # characters of a wrong value
# What a number may be, by its field's name and else by its type: what is beyond would be of no machine of today.
RANGES = {
    "seconds": (1e-9, 1e6, "a time in seconds, between a nanosecond and 10^6 s"),
    "spread": (0, 1e18, "a number from 0 up"),
    "median_spread": (0, 1e18, "a number from 0 up"),
    "state": (-1e18, 1e18, "a number, and between -10^18 and 10^18"),
    "side": (1, 2**40, "a whole number from 1 to 2^40"),
    int: (1, 1e24, "a whole number from 1 up"),
    Number: (1e-18, 1e18, "a number above 0, and at most 10^18"),
}
LENGTHS = {"name": 60, "by": 60, "dtype": 60}  # of texts, in characters; all others may be longer
LONGEST = 500
_SIZE = "[B, D, K], three whole sizes from 1 to 2^40"
_ROW = "[B, D, K, seconds], three whole sizes from 1 to 2^40 and a time between a nanosecond and 10^6 s"


def encoded(value: object) -> object:
    """The value as JSON has it; a count that is 0 by default stands there only if it is another."""
    if is_dataclass(value):
        found = {one: getattr(value, one.name) for one in fields(value)}
        return {_name(one): encoded(inner) for one, inner in found.items() if inner or one.default != 0}
    if isinstance(value, Mapping):
        if any(isinstance(key, tuple) for key in value):
            return [[*size, seconds] for size, seconds in value.items()]
        return {key: encoded(inner) for key, inner in value.items()}
    return [encoded(inner) for inner in value] if isinstance(value, tuple) else value


def decoded(kind: type, data: object) -> tuple[object, list[str]]:
    """That dataclass out of JSON, and a sentence on every field that is missing, foreign or wrong; with one, None."""
    reader = _Reader()
    return reader.read(kind, data, ()), reader.problems


class _Reader:
    """Builds what annotations ask for, and keeps a sentence on everything else that it meets."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.defaults: dict[Path, str] = {}  # what a field may also be

    def read(self, kind: object, data: object, path: Path) -> object:
        """The data as that kind, which is an annotation."""
        if is_dataclass(kind):
            return self._object(kind, data, path)
        if get_origin(kind) is Mapping:
            key, inner = get_args(kind)
            return self._rows(data, path) if key == Size else self._mapping(inner, data, path)
        if kind == Size:
            return tuple(data) if self._check(_is_row(data, 3), _SIZE, data, path) else None
        if get_origin(kind) is tuple:
            return self._list(get_args(kind)[0], data, path)
        return data if self._check(*_value(kind, data, path), data, path) else None

    def _check(self, right: object, allowed: str, data: object, path: Path) -> bool:
        if not right:
            default = f", or {self.defaults[path]}" if path in self.defaults else ""
            self.problems.append(f"{_text(path) or 'a recording'} is {allowed}{default}; got {_short(data)}.")
        return bool(right)

    def _object(self, kind: type, data: object, path: Path) -> object:
        hints, known = get_type_hints(kind), {_name(one): one for one in fields(kind)}
        allowed = f"an object with the fields {', '.join(known)}"
        if not self._check(isinstance(data, dict), allowed, data, path):
            return None
        values = {}
        for name, one in known.items():
            place, default = (*path, name), _default(one)
            if not default:  # so that "nothing" is no problem where something would have to be right
                self.defaults[place] = json.dumps(encoded(default))
            if name not in data:
                self.problems += [f"the field {_text(place)} is missing."] if default is MISSING else []
            elif json.dumps(data[name]) != self.defaults.get(place):
                values[one.name] = self.read(_without_none(hints[one.name]), data[name], place)
        self.problems += [
            f"the field {_text((*path, name))} is none of a recording's; there are: {', '.join(known)}."
            for name in data
            if name not in known
        ]
        return None if self.problems else kind(**values)

    def _mapping(self, kind: object, data: object, path: Path) -> dict[str, object]:
        if not self._check(data and isinstance(data, dict), "an object with something in it", data, path):
            return {}
        return {name: self.read(kind, inner, (*path, name)) for name, inner in data.items()}

    def _list(self, kind: object, data: object, path: Path) -> tuple[object, ...]:
        if not self._check(data and isinstance(data, list), "a list with something in it", data, path):
            return ()
        return tuple(self.read(kind, inner, (*path, place)) for place, inner in enumerate(data))

    def _rows(self, data: object, path: Path) -> dict[Size, Number]:
        if not self._check(data and isinstance(data, list), "a list of rows, at least one", data, path):
            return {}
        right = [self._check(_is_row(row, 4), _ROW, row, (*path, place)) for place, row in enumerate(data)]
        rows = [(tuple(row[:3]), row[3]) for row, is_row in zip(data, right, strict=True) if is_row]
        for size, times in Counter(size for size, _ in rows).items():
            if times > 1:
                self.problems.append(f"{_text(path)} has {' × '.join(map(str, size))} {times} times.")
        return dict(rows)


def _name(one: Field) -> str:
    return NAMES_IN_FILES.get(one.name, one.name)


def _default(one: Field) -> object:
    return one.default if one.default_factory is MISSING else one.default_factory()


def _without_none(kind: object) -> object:
    """The annotation without its None, which a field may be by default alone."""
    kinds = get_args(kind)
    return reduce(or_, (one for one in kinds if one is not NoneType)) if NoneType in kinds else kind


def _value(kind: object, data: object, path: Path) -> tuple[bool, str]:
    """Whether it is such a value, and what would be."""
    if kind is bool:
        return isinstance(data, bool), "true or false"
    if path[-1] == "taken":
        return _is_date(data), "a date, such as 2026-11-22"
    if kind is str:
        longest = LENGTHS.get(path[-1], LONGEST)
        is_text = isinstance(data, str) and data.isprintable() and data.strip() and len(data) <= longest
        return bool(is_text), f"a text of one line and at most {longest} characters"
    plain = int if kind is int else Number
    low, high, allowed = RANGES[next((name for name in reversed(path) if name in RANGES), plain)]
    return isinstance(data, kind) and not isinstance(data, bool) and low <= data <= high, allowed


def _is_date(data: object) -> bool:
    try:
        return str(datetime.date.fromisoformat(data)) == data
    except (TypeError, ValueError):
        return False


def _is_row(data: object, length: int) -> bool:
    """Three sides, and perhaps a time."""
    if not isinstance(data, list) or len(data) != length:
        return False
    sides, times = data[:3], data[3:]
    return all(_value(int, side, ("side",))[0] for side in sides) and all(
        _value(Number, seconds, ("seconds",))[0] for seconds in times
    )


def _text(path: Path) -> str:
    """Such as `workloads[0].seconds`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part[:SHOWN]}" for part in path)
    return "".join(parts).removeprefix(".")


def _short(value: object) -> str:
    said = repr(value)
    return said if len(said) <= SHOWN else f"{said[:SHOWN]}…"
