"""Frozen dataclasses as JSON. Their annotations define what a file may hold.

A mapping by size stands in the file as a list of rows, [B, D, K, seconds]. Names in a file that are
no fields are ignored, so that files of another version of the course can be read.
"""

import datetime
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import reduce
from operator import or_
from types import NoneType
from typing import get_args, get_origin, get_type_hints

MatmulSize = tuple[int, int, int]  # (B, D, K)
NAMES_IN_FILES = {"seconds_by_size": "products"}  # of fields that have another name in a file
SHOWN = 60  # characters of a wrong value that are shown
LENGTHS = {"name": 60, "by": 60, "dtype": 60}  # the most characters of these texts
LONGEST = 500  # the most characters of other texts
# No quantity of a machine of today is below LEAST, unless it is 0, or above MOST.
LEAST = 1e-18
MOST = 1e24
MAY_BE_0 = ("spread", "median_spread")  # all other numbers in a file have to be above 0


def encoded(value: object) -> object:
    """Return the value as JSON has it.

    A field that is 0 or False is left out if its default is 0 or False.
    """
    if is_dataclass(value):
        encoded_fields = {}
        for field in fields(value):
            inner = getattr(value, field.name)
            is_left_out = not inner and field.default == 0  # False equals 0, too
            if not is_left_out:
                encoded_fields[name_of(field)] = encoded(inner)
        return encoded_fields
    if isinstance(value, Mapping):
        if any(isinstance(key, tuple) for key in value):  # by size, (B, D, K): rows in the file
            return [[*size, seconds] for size, seconds in value.items()]
        return {key: encoded(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [encoded(inner) for inner in value]
    return value


def decoded(kind: object, data: object, path: str = "") -> object:
    """Return the JSON data as a value of that kind, which is an annotation.

    A kind is a dataclass, a Mapping, a tuple, or plain, such as `int | float`. `path` leads to the
    data in the file, such as "machine.name". A ValueError names the first field that is missing or
    wrong.
    """
    if is_dataclass(kind):
        return _object(kind, data, path)
    if get_origin(kind) is Mapping:
        key, inner = get_args(kind)  # the annotations of the keys and of the values
        if key == MatmulSize:
            return _rows(inner, data, path)
        return _mapping(inner, data, path)
    if get_origin(kind) is tuple:
        return _list(get_args(kind), data, path)
    _, _, name = path.rpartition(".")
    is_right, allowed = _judged(kind, data, name)
    _check(is_right, allowed, data, path)
    return data


def _check(is_right: object, allowed: str, data: object, path: str) -> None:
    """Unless `is_right`, raise a ValueError that says what is allowed at `path`.

    `allowed` is in words, such as "a list of 3". Without a path, the data are the whole file.
    """
    if is_right:
        return
    shown = repr(data)
    if len(shown) > SHOWN:
        shown = f"{shown[:SHOWN]}…"
    raise ValueError(f"{path or 'a recording'} is {allowed}; got {shown}.")


def _object(kind: type, data: object, path: str) -> object:
    """Return the data as an object of the dataclass `kind`."""
    hints = get_type_hints(kind)
    known = {name_of(field): field for field in fields(kind)}
    _check(isinstance(data, dict), f"an object with the fields {', '.join(known)}", data, path)
    values = {}
    for name, field in known.items():
        place = f"{path}.{name}" if path else name
        default = default_of(field)
        if name not in data and default is MISSING:
            raise ValueError(f"the field {place} is missing.")
        # A value that equals the default is not decoded, because the default may be None, and None
        # has no decoder. (MISSING, where there is no default, equals nothing in a file.)
        if name in data and data[name] != encoded(default):
            kind_of_field = _without_none(hints[field.name])
            values[field.name] = decoded(kind_of_field, data[name], place)
    return kind(**values)


def _mapping(kind: object, data: object, path: str) -> dict[str, object]:
    """Return the data as a dictionary whose values are of that kind."""
    _check(isinstance(data, dict) and data, "an object with something in it", data, path)
    return {name: decoded(kind, inner, f"{path}.{name[:SHOWN]}") for name, inner in data.items()}


def _list(kinds: tuple[object, ...], data: object, path: str) -> tuple[object, ...]:
    """Return the data as a tuple of these kinds; (kind, ...) stands for any number of one kind."""
    _check(isinstance(data, list) and data, "a list with something in it", data, path)
    if kinds[-1] is ...:  # such as (Workload, ...), of the annotation tuple[Workload, ...]
        kinds = kinds[:1] * len(data)
    _check(len(data) == len(kinds), f"a list of {len(kinds)}", data, path)
    values = []
    for number, (kind, inner) in enumerate(zip(kinds, data, strict=True)):
        values.append(decoded(kind, inner, f"{path}[{number}]"))
    return tuple(values)


def _rows(kind: object, data: object, path: str) -> dict[MatmulSize, object]:
    """Return the data, rows [B, D, K, value], as {(B, D, K): value} with values of that kind."""
    row_kind = tuple[*get_args(MatmulSize), kind]  # tuple[int, int, int, kind]
    kinds = (row_kind, ...)  # any number of rows of that kind, as in tuple[row_kind, ...]
    rows = _list(kinds, data, path)
    by_size = {(b, d, k): value for b, d, k, value in rows}
    _check(len(by_size) == len(rows), "a list of rows whose sizes all differ", data, path)
    return by_size


def name_of(field: Field) -> str:
    """Return the name that a field has in files."""
    return NAMES_IN_FILES.get(field.name, field.name)


def default_of(field: Field) -> object:
    """Return a field's value if a file lacks the field; MISSING if a file has to have the field."""
    if field.default_factory is MISSING:
        return field.default
    return field.default_factory()


def _without_none(kind: object) -> object:
    """Return the annotation without `| None`, such as `int | float` for `int | float | None`.

    A field may be None by default, but not in a file.
    """
    kinds = get_args(kind)
    if NoneType not in kinds:
        return kind
    others = [other for other in kinds if other is not NoneType]
    return reduce(or_, others)  # joins them with | again


def _judged(kind: object, data: object, name: str) -> tuple[bool, str]:
    """Return whether the data are right for a field of that kind and name, and what is allowed.

    What is allowed is in words, such as "true or false".
    """
    if kind is bool:
        return isinstance(data, bool), "true or false"
    if kind is str and name == "taken":
        return _is_date(data), "a date, such as 2026-11-22"
    if kind is str:
        longest = LENGTHS.get(name, LONGEST)
        allowed = f"a text of one line and at most {longest} characters"
        if not isinstance(data, str):
            return False, allowed
        is_empty = not data.strip()
        return data.isprintable() and not is_empty and len(data) <= longest, allowed
    if name in MAY_BE_0:
        least = 0
        bounds = "from 0 up"
    else:
        least = LEAST
        bounds = "above 0"
    noun = "whole number" if kind is int else "number"
    is_number = isinstance(data, kind) and not isinstance(data, bool)  # to Python, True is an int
    return is_number and least <= data <= MOST, f"a {noun} {bounds}, and at most 10^24"


def _is_date(data: object) -> bool:
    """Whether the data are a date in the form 2026-11-22, which is only one of ISO 8601's forms."""
    try:
        return str(datetime.date.fromisoformat(data)) == data
    except (TypeError, ValueError):
        return False
