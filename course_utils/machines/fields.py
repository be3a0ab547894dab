"""Whether JSON has the fields of a recording, and a sentence on each that it has not."""

import datetime
from collections import Counter
from collections.abc import Callable, Iterator

SHOWN = 60  # characters of a wrong value
LARGEST_SIZE = 2**40
SHORTEST_S, LONGEST_S = 1e-9, 1e6  # what is outside is no time of a product
LARGEST = 1e18  # bytes, FLOP/s, FLOPs: what is beyond would be no machine of today
LONGEST_TEXT = 500
Test = Callable[[object], bool]


def _is_text(value: object) -> bool:
    return _may_be_empty(value) and bool(value.strip())


def _may_be_empty(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and len(value) <= LONGEST_TEXT


def _is_name(value: object) -> bool:
    return _is_text(value) and len(value) <= SHOWN


def _is_date(value: object) -> bool:
    try:
        return str(datetime.date.fromisoformat(value)) == value
    except (TypeError, ValueError):
        return False


def _is_number(value: object) -> bool:
    """Neither NaN nor infinite nor an integer that no float can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


def _is_positive(value: object) -> bool:
    return _is_number(value) and value > 0


def _is_share(value: object) -> bool:
    return _is_number(value) and value >= 0


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**24


def _is_size(value: object) -> bool:
    sides = value if isinstance(value, list) else []
    return len(sides) == 3 and all(_is_count(side) and 0 < side <= LARGEST_SIZE for side in sides)


def _is_time(value: object) -> bool:
    return _is_number(value) and SHORTEST_S <= value <= LONGEST_S


def _is_row(value: object) -> bool:
    return isinstance(value, list) and len(value) == 4 and _is_size(value[:3]) and _is_time(value[3])


def _is_list_of(test: Test) -> Test:
    return lambda value: isinstance(value, list) and all(map(test, value))


def _is_table_of(test: Test) -> Test:
    return lambda value: isinstance(value, dict) and all(map(test, value.values()))


def _or_null(test: Test) -> Test:
    return lambda value: value is None or test(value)


TEXT = _is_text, f"a text of one line and at most {LONGEST_TEXT} characters"
NAME = _is_name, f"a name of one line and at most {SHOWN} characters"
POSITIVE = _is_positive, "a number above 0, and at most 10^18"
TIME = _is_time, "a time in seconds, between a nanosecond and 10^6 s"
SHARE = _is_share, "a number from 0 up"
COUNT = _is_count, "a whole number from 0 up"
RATES = _is_table_of(_is_positive), "rates above 0 by dtype"
ROW = (
    _is_row,
    "[B, D, K, seconds], three whole sizes from 1 to 2^40 and a time between a nanosecond and 10^6 s",
)
ANYTHING = lambda value: True, "anything"  # looked into below

WHOLE = {
    "machine": ANYTHING,
    "taken": (_is_date, "a date, such as 2026-11-22"),
    "software": TEXT,
    "products": ANYTHING,
    "median_spread": (_or_null(_is_share), "a number from 0 up, or null where nobody said"),
}
MACHINE = {
    "name": NAME,
    "peak_flop_per_sec": RATES,
    "bytes": (lambda value: _is_count(value) and value > 0, "a whole number from 1 up"),
    "bytes_per_sec": POSITIVE,
    "source": TEXT,
    "sparse_flop_per_sec": RATES,
    "achieved_flop_per_sec": RATES,
    "achieved_bytes_per_sec": (_or_null(_is_positive), "a number above 0, or null"),
    "achieved_source": (_may_be_empty, "a text of one line, or none"),
    "has_data_sheet": (lambda value: isinstance(value, bool), "true or false"),
}
MACHINE_NEEDED = {
    name: MACHINE[name] for name in ("name", "peak_flop_per_sec", "bytes", "bytes_per_sec", "source")
}
WORKLOAD = {
    "name": TEXT,
    "sizes": (_is_table_of(_is_count), "whole numbers by name"),
    "dtype": TEXT,
    "seconds": TIME,
    "spread": SHARE,
}
WORKLOAD_COUNTS = dict.fromkeys(("flops", "bytes", "tokens", "predicted_peak_bytes", "peak_bytes"), COUNT)
REPEAT = {"dtype": NAME, "size": (_is_size, "[B, D, K]"), "seconds": TIME, "spread": SHARE}
SOURCE = dict.fromkeys(("by", "where", "licence", "method", "not_said"), TEXT) | {"by": NAME}
SET_APART = {"dtype": NAME, "why": TEXT, "products": ANYTHING}
LISTS = {"workloads": (WORKLOAD, WORKLOAD_COUNTS), "repeats": (REPEAT, {}), "set_apart": (SET_APART, {})}
MAY_BE_MISSING = {
    **dict.fromkeys(LISTS, ANYTHING),
    "source": ANYTHING,
    "left_out": (_is_list_of(_is_text), "a list of sentences"),
    "state": (_is_table_of(_is_table_of(_is_number)), "numbers by name, by when they were read"),
}


def problems(data: object) -> Iterator[str]:
    """A sentence on every field that is missing, foreign or wrong; what `make record` writes has none."""
    yield from _checked("", data, WHOLE, MAY_BE_MISSING)
    if not isinstance(data, dict):
        return
    if "machine" in data:
        yield from _checked("machine", data["machine"], MACHINE_NEEDED, MACHINE)
    if "products" in data:
        yield from _products("products", data["products"])
    for name, (rules, more) in LISTS.items():
        entries = data.get(name, [])
        if not isinstance(entries, list):
            yield f"{name} is a list; got {_short(entries)}."
            continue
        for number, one in enumerate(entries):
            yield from _checked(f"{name}[{number}]", one, rules, more)
            if name == "set_apart" and isinstance(one, dict) and "products" in one:
                yield from _rows(f"{name}[{number}].products", one["products"])
    if data.get("source") is not None:
        yield from _checked("source", data["source"], SOURCE, {})


def _checked(
    where: str, data: object, required: dict[str, tuple[Test, str]], more: dict[str, tuple[Test, str]]
) -> Iterator[str]:
    if not isinstance(data, dict):
        yield f"{where or 'a recording'} is an object with the fields {', '.join(required)}; got {_short(data)}."
        return
    rules, dot = more | required, f"{where}." if where else ""
    for name in required:
        if name not in data:
            yield f"the field {dot}{name} is missing."
    for name, value in data.items():
        if name not in rules:
            yield f"the field {dot}{name[:SHOWN]} is none of a recording's; there are: {', '.join(rules)}."
        elif not rules[name][0](value):
            yield f"{dot}{name} is {rules[name][1]}; got {_short(value)}."


def _products(where: str, tables: object) -> Iterator[str]:
    if not isinstance(tables, dict) or not tables:
        yield f"{where} are rows by dtype, at least one; got {_short(tables)}."
        return
    for dtype, rows in tables.items():
        yield from _rows(f"{where}.{dtype[:SHOWN]}", rows)


def _rows(where: str, rows: object) -> Iterator[str]:
    if not isinstance(rows, list) or not rows:
        yield f"{where} is a list of rows, at least one; got {_short(rows)}."
        return
    for number, row in enumerate(rows):
        if not _is_row(row):
            yield f"{where}[{number}] is {ROW[1]}; got {_short(row)}."
    sizes = [tuple(row[:3]) for row in rows if _is_row(row)]
    for size, times in Counter(sizes).items():
        if times > 1:
            yield f"{where} has {' × '.join(map(str, size))} {times} times."


def _short(value: object) -> str:
    said = repr(value)
    return said if len(said) <= SHOWN else f"{said[:SHOWN]}…"
