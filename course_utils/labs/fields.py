"""What a lab can ask, and what is legal there: the panel, the page and the tests all learn it here.

A field is made with the function of its kind, as the default of a dataclass's field:

    b: int = size("B", 1024)
    dtype: str = choice("dtype", ("fp32", "bf16"), "fp32")
"""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.quantities import Number

LARGEST = 2**20  # size
NEW_NAMES_SIZE = 4
MOST_NAMES = 8  # that Sizes has sliders for
Said = Mapping[str, object]  # what the controls say, by name


def size_of(name: str, said: object) -> int:
    """What was typed, as a whole number.

    >>> size_of("B", "1,024"), size_of("B", "2^14"), size_of("B", 3)
    (1024, 16384, 3)
    """
    words = str(said).strip()
    power = re.fullmatch(r"2 *(?:\^|\*\*) *(\d{1,3})", words, re.ASCII)
    if power or re.fullmatch(r"\d{1,12}|\d{1,3}([,_]\d{3})+", words, re.ASCII):
        number = 2 ** int(power[1]) if power else int(words.replace(",", ""))
        if 1 <= number <= LARGEST:
            return number
    raise ValueError(
        f"{name} is a size: a whole number from 1 to 1,048,576, like 1024 or 2^10. “{str(said)[:40]}” is none."
    )


@dataclass(frozen=True, kw_only=True)
class Field:
    """One question; `when` says whether it is asked at all, and where it is not, its default holds."""

    label: str
    default: object
    when: Callable[[Said], bool] | None = None

    def asked(self, said: Said) -> bool:
        """Whether it is asked, in view of the other answers."""
        return self.when is None or self.when(said)

    def read(self, said: object) -> object:
        """The answer, or a sentence on what it can be."""
        return said


@dataclass(frozen=True, kw_only=True)
class Size(Field):
    """A whole number from 1 to 2^20, dragged or typed."""

    slider: bool = True
    slider_px: int = 170

    def read(self, said: object) -> int:
        """As a number."""
        return size_of(self.label, said)


@dataclass(frozen=True, kw_only=True)
class Sizes(Field):
    """A size for each of some names, which depend on other answers; sizes of names that have gone are remembered."""

    names: Callable[[Said], Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Choice(Field):
    """One of a few, each a button, or of more with long names in a menu, or in order on a slider.

    `options` are the values by their names.
    """

    options: Mapping[str, object]
    menu: bool = False
    slider_px: int = 0

    def read(self, said: object) -> object:
        """One of them."""
        if said not in self.options.values():
            raise ValueError(f"{self.label} is one of {', '.join(self.options)}; not {said!s:.40}.")
        return said


@dataclass(frozen=True, kw_only=True)
class Several(Field):
    """Any of a few, each with a tick; the answer is their names in order."""

    options: Sequence[str]

    def read(self, said: object) -> tuple[str, ...]:
        """In the order of the options."""
        if strangers := [name for name in said if name not in self.options]:
            raise ValueError(f"There is no {strangers[0]!s:.40} here. There are: {', '.join(self.options)}.")
        return tuple(name for name in self.options if name in said)


@dataclass(frozen=True, kw_only=True)
class Whole(Field):
    """A whole number on a slider; its end may follow other answers, and who stands at the end goes with it."""

    least: int
    most: int | Callable[[Said], int]
    step: int = 1
    width_px: int = 300

    def end(self, said: Said) -> int:
        """The largest that can be chosen."""
        return self.most(said) if callable(self.most) else self.most


@dataclass(frozen=True, kw_only=True)
class Tick(Field):
    """Yes or no."""


@dataclass(frozen=True, kw_only=True)
class Typed(Field):
    """Words; what they may be is the lab's to say. `examples` are legal ones."""

    examples: Sequence[str]
    placeholder: str = ""
    width_px: int = 200


# Each returns a dataclass's field, and says Any of it, as dataclasses.field does.


def said_is(name: str, answer: object) -> Callable[[Said], bool]:
    """For `when`: asked where that is the answer to another question."""
    return lambda said: said[name] == answer


def _asks(one: Field) -> object:
    return dataclasses.field(default_factory=lambda: one.default, metadata={"field": one})


def size(label: str, default: int, **options: object) -> Any:
    """A size, with a slider unless `slider=False`."""
    return _asks(Size(label=label, default=default, **options))


def sizes(label: str, default: Mapping[str, int], names: Callable[[Said], Sequence[str]]) -> Any:
    """A size for each name."""
    return _asks(Sizes(label=label, default=dict(default), names=names))


def choice(label: str, options: Sequence[str] | Mapping[str, object], default: object, **more: object) -> Any:
    """One of a few."""
    named = options if isinstance(options, Mapping) else {str(one): one for one in options}
    return _asks(Choice(label=label, options=named, default=default, **more))


def among(label: str, options: Sequence[Number], default: Number, *, width_px: int) -> Any:
    """One of many numbers in order, on a slider."""
    return choice(label, {f"{n:g}": n for n in options}, default, slider_px=width_px)


def several(label: str, options: Sequence[str], default: Sequence[str], **more: object) -> Any:
    """Any of a few."""
    return _asks(Several(label=label, options=tuple(options), default=tuple(default), **more))


def whole(label: str, default: int, least: int, most: int | Callable[[Said], int], **more: object) -> Any:
    """A whole number from `least` to `most`, which may depend on other answers."""
    return _asks(Whole(label=label, default=default, least=least, most=most, **more))


def tick(label: str, default: bool, **more: object) -> Any:
    """Yes or no."""
    return _asks(Tick(label=label, default=default, **more))


def typed(label: str, default: str, *, examples: Sequence[str], **more: object) -> Any:
    """Words."""
    return _asks(Typed(label=label, default=default, examples=tuple(examples), **more))
