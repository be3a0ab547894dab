"""How an answer is judged: not attempted yet, right, or wrong with what was expected and what came."""

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape

from course_utils.checks.agreement import agree, is_number, near, plain, same
from course_utils.checks.sentences import (
    IN_PLACE,
    NO_NUMBER,
    advice_on_calling,
    advice_on_kind,
    argument,
    beginning,
    gave,
    name_of,
    said_by,
    shown,
    stopped,
)
from course_utils.figures import COLOURS
from course_utils.quantities import Number

COLOUR = {"not attempted yet": COLOURS["limit"], "right": "#00875f", "not yet": COLOURS["alarm"]}


@dataclass(frozen=True)
class Verdict:
    """What the reader is told."""

    status: str  # "not attempted yet", "right", "not yet"
    words: str = ""

    @property
    def right(self) -> bool:
        """Whether the answer passed."""
        return self.status == "right"

    def __repr__(self) -> str:
        return f"{self.status.capitalize()}. {self.words}".strip()

    def _repr_html_(self) -> str:
        border = f"border-left: 4px solid {COLOUR[self.status]}; padding: 4px 10px"
        return f'<div style="{border}"><b>{self.status.capitalize()}.</b> {escape(self.words)}</div>'


NOT_ATTEMPTED = Verdict(
    "not attempted yet", "Put your answer where the ... stands, and run both cells again."
)


def judge_value(
    answer: object,
    expected: object,
    *,
    wanted: str,
    tempting: Mapping[object, str],
    because: str,
    tolerance: Number = 0.0,
) -> Verdict:
    """One value, exact or to a relative tolerance, with advice for the wrong values that people come to.

    `wanted` names the quantity and its unit, for those who answer with something else altogether.
    """
    if answer is ...:
        return NOT_ATTEMPTED
    if agree(answer, expected, tolerance):
        return Verdict("right", because)
    for wrong, words in tempting.items():
        if agree(answer, wrong, tolerance):
            return Verdict("not yet", f"{shown(answer)} is not it. {words}")
    number = plain(answer)
    if not is_number(expected):
        said = f"{beginning(answer)} is not it."
    elif not is_number(number):
        said = f"{beginning(answer)} is not one plain number{': write it without quotes or a unit' * isinstance(number, str)}."
    elif number != number:  # which holds of NaN alone
        said = NO_NUMBER
    elif near(number, expected, 0.03):
        said = f"{shown(answer)} is close, but something is rounded or left out."
    else:
        said = f"{shown(answer)} is too {'large' if number > expected else 'small'}."
    return Verdict("not yet", f"{said} Wanted: {wanted}.")


def judge_function(
    answer: object,
    oracle: Callable[..., object],
    cases: Iterable[tuple],
    *,
    tempting: Mapping[Callable[..., object], str],
    because: str,
    tolerance: Number = 0.0,
) -> Verdict:
    """A function, case by case against the oracle. A tempting function that went the same way all along gives advice.

    `tolerance` is a share of each number; of a tensor, a share of its largest one.
    """
    if not callable(answer):
        return no_function(answer)
    alike = dict(tempting)
    for case in cases:
        theirs = (
            case if (lasting := all(isinstance(x, int | float | str) for x in case)) else copy.deepcopy(case)
        )
        came, error = call(answer, *theirs)
        if came is ...:
            return NOT_ATTEMPTED
        expected = None if error else oracle(*(case if lasting else copy.deepcopy(case)))
        if isinstance(expected, bool) and isinstance(plain(came), int) and plain(came) in (0, 1):
            came = bool(came)
        plainly = type(came) is type(expected) is float and came == expected != 0  # of 131,072, say
        right = (
            not error and (plainly or agree(came, expected, tolerance)) and (lasting or same(theirs, case))
        )
        if right and not alike:
            continue
        alike = {
            wrong: words for wrong, words in alike.items() if _alike(wrong, case, came, error, tolerance)
        }
        if right:
            continue
        called = f"{name_of(answer)}({', '.join(map(argument, case))})"
        advice = next(iter(alike.values()), "")
        if error:
            said = f"{stopped(answer, error)} {advice or advice_on_calling(answer, case)}"
        elif not same(theirs, case):
            said = IN_PLACE
        else:
            said = f"{gave(came, expected, tolerance)}. {advice or advice_on_kind(came, expected)}"
        return Verdict("not yet", f"{called} {said}".strip())
    return Verdict("right", because)


def no_function(answer: object) -> Verdict:
    """What is said of an answer that cannot be called."""
    if answer is ...:
        return NOT_ATTEMPTED
    return Verdict("not yet", f"A function is wanted here, not {shown(answer)}.")


def _alike(
    wrong: Callable[..., object], case: tuple, came: object, error: BaseException | None, tolerance: Number
) -> bool:
    """Whether that function gives the same, or stops in the same way."""
    its, mistake = call(wrong, *copy.deepcopy(case))
    if mistake or error:
        return type(mistake) is type(error) and said_by(mistake) == said_by(error)
    return agree(its, came, tolerance)


def call(function: Callable[..., object], *arguments: object) -> tuple[object, BaseException | None]:
    """What the function returned, or the error that it stopped with."""
    try:
        return function(*arguments), None
    except (Exception, SystemExit) as error:
        return None, error
