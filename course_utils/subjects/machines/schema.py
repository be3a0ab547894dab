"""Frozen dataclasses as JSON: their annotations say what a file may hold.

A mapping by size stands there as a list of rows, [B, D, K, seconds]. What a file has beyond the fields is left alone, so
that files of another version of the course can be read.
"""

import datetime
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import reduce
from operator import or_
from types import NoneType
from typing import get_args, get_origin, get_type_hints

MatmulSize = tuple[int, int, int]  # (B, D, K)
NAMES_IN_FILES = {"seconds_by_size": "products"}
SHOWN = 60  # characters of a wrong value
LENGTHS = {"name": 60, "by": 60, "dtype": 60}  # of texts, in characters; all others may be longer
LONGEST = 500
LEAST, MOST = 1e-18, 1e24  # beyond these is no quantity of a machine of today
MAY_BE_0 = ("spread", "median_spread")


def encoded(value: object) -> object:
    """The value as JSON has it. A count with the default 0 is left out while it is 0."""
    if is_dataclass(value):
        found = {one: getattr(value, one.name) for one in fields(value)}
        return {
            name_of(one): encoded(inner)
            for one, inner in found.items()
            if inner or one.default != 0
        }
    if isinstance(value, Mapping):
        if any(isinstance(key, tuple) for key in value):
            return [[*size, seconds] for size, seconds in value.items()]
        return {key: encoded(inner) for key, inner in value.items()}
    return [encoded(inner) for inner in value] if isinstance(value, tuple) else value


def decoded(kind: object, data: object, path: str = "") -> object:
    """The data as that kind, which is an annotation; a ValueError names the first field that is missing or wrong."""
    if is_dataclass(kind):
        return _object(kind, data, path)
    if get_origin(kind) is Mapping:
        key, inner = get_args(kind)
        return _rows(inner, data, path) if key == MatmulSize else _mapping(inner, data, path)
    if get_origin(kind) is tuple:
        return _list(get_args(kind), data, path)
    _check(*_value(kind, data, path.rpartition(".")[2]), data, path)
    return data


def _check(right: object, allowed: str, data: object, path: str) -> None:
    if not right:
        said = repr(data)
        raise ValueError(
            f"{path or 'a recording'} is {allowed}; got {said[:SHOWN]}{'…' * (len(said) > SHOWN)}."
        )


def _object(kind: type, data: object, path: str) -> object:
    hints, known = get_type_hints(kind), {name_of(one): one for one in fields(kind)}
    _check(isinstance(data, dict), f"an object with the fields {', '.join(known)}", data, path)
    values = {}
    for name, one in known.items():
        place, default = f"{path}.{name}".removeprefix("."), default_of(one)
        if name not in data and default is MISSING:
            raise ValueError(f"the field {place} is missing.")
        if name in data and data[name] != encoded(default):
            values[one.name] = decoded(_without_none(hints[one.name]), data[name], place)
    return kind(**values)


def _mapping(kind: object, data: object, path: str) -> dict[str, object]:
    _check(isinstance(data, dict) and data, "an object with something in it", data, path)
    return {name: decoded(kind, inner, f"{path}.{name[:SHOWN]}") for name, inner in data.items()}


def _list(kinds: tuple[object, ...], data: object, path: str) -> tuple[object, ...]:
    _check(isinstance(data, list) and data, "a list with something in it", data, path)
    if kinds[-1] is ...:
        kinds = kinds[:1] * len(data)
    _check(len(data) == len(kinds), f"a list of {len(kinds)}", data, path)
    return tuple(
        decoded(*pair, f"{path}[{n}]") for n, pair in enumerate(zip(kinds, data, strict=True))
    )


def _rows(kind: object, data: object, path: str) -> dict[MatmulSize, object]:
    rows = _list((tuple[*get_args(MatmulSize), kind], ...), data, path)
    found = {row[:3]: row[3] for row in rows}
    _check(len(found) == len(rows), "a list of rows, each of another size", data, path)
    return found


def name_of(one: Field) -> str:
    """What a field is called in files."""
    return NAMES_IN_FILES.get(one.name, one.name)


def default_of(one: Field) -> object:
    """What a field is if a file does not have it; MISSING if it has to be there."""
    return one.default if one.default_factory is MISSING else one.default_factory()


def _without_none(kind: object) -> object:
    """The annotation without `| None`: a field may be None only by default, never in a file."""
    kinds = get_args(kind)
    return reduce(or_, (one for one in kinds if one is not NoneType)) if NoneType in kinds else kind


def _value(kind: object, data: object, name: str) -> tuple[object, str]:
    """Whether it is a value of that kind, and what is one in words."""
    if kind is bool:
        return isinstance(data, bool), "true or false"
    if kind is str and name == "taken":
        return _is_date(data), "a date, such as 2026-11-22"
    if kind is str:
        longest = LENGTHS.get(name, LONGEST)
        is_text = (
            isinstance(data, str) and data.isprintable() and data.strip() and len(data) <= longest
        )
        return is_text, f"a text of one line and at most {longest} characters"
    least, from_where = (0, "from 0 up") if name in MAY_BE_0 else (LEAST, "above 0")
    is_number = isinstance(data, kind) and not isinstance(data, bool) and least <= data <= MOST
    return is_number, f"a {'whole ' * (kind is int)}number {from_where}, and at most 10^24"


def _is_date(data: object) -> bool:
    try:
        return str(datetime.date.fromisoformat(data)) == data
    except (TypeError, ValueError):
        return False
