"""What a lab can ask, and what is legal there: the panel, the page and the tests all learn it here.

A field is made with the function of its kind, as the default of a dataclass's field:

    b: int = size("B", 1024)
    dtype: str = choice("dtype", ("fp32", "bf16"), "fp32")
"""

import dataclasses
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from course_utils.core.say import Number
from course_utils.engine.labs.control_parts import (
    LETTER_PX,
    ControlPart,
    size_moved,
    size_of,
    size_parts,
)

NEW_NAMES_SIZE = 4
MOST_NAMES = 8  # that Sizes has sliders for
Said = Mapping[str, object]  # what the controls say, by name


@dataclass(frozen=True, kw_only=True)
class Field:
    """One question. `when` says whether it is asked; if not, its default is the answer."""

    kind: ClassVar[str] = ""
    types: ClassVar[tuple[type, ...]]
    means: ClassVar[str]  # what an answer is, in words
    label: str
    default: object
    when: Callable[[Said], bool] | None = None
    heading: str = ""  # in front of all parts

    def asked(self, said: Said) -> bool:
        """Whether it is asked, in view of the other answers."""
        return self.when is None or self.when(said)

    def held(self, said: object) -> object:
        """What the control holds after that; ValueError if it cannot."""
        if not isinstance(said, self.types):
            raise ValueError(f"{self.label} cannot be {reprlib.repr(said)}. It is {self.means}.")
        return said

    def read(self, held: object) -> object:
        """The answer; ValueError if the control holds none."""
        return held

    def parts(self, held: object, said: Said) -> list[ControlPart]:
        """The parts that a reader moves to answer it; they may depend on other answers."""
        look = self._look(said)
        return (
            [ControlPart(self.kind, self.label, held, not self.asked(said), **look)]
            if self.kind
            else []
        )

    def _look(self, said: Said) -> dict[str, object]:
        return {}

    def moved(self, held: object, part: ControlPart, to: object) -> object:
        """What the control holds when that part has been moved."""
        return to


@dataclass(frozen=True, kw_only=True)
class Size(Field):
    """A whole number from 1 to 2^20, dragged or typed; what is typed stays as it is typed."""

    types, means = (int, str), "a size, like 1024 or 2^10"
    slider: bool = True
    slider_px: int = 170

    def read(self, held: object) -> int:
        """The number that was dragged or typed; ValueError if it is none."""
        return size_of(self.label, held)

    def parts(self, held: object, said: Said) -> list[ControlPart]:
        """A slider with a text field, or the text field alone."""
        if self.slider:
            name_px = LETTER_PX * len(self.label) + 12
            return size_parts(
                self.label, held, self.slider_px, name_px, hidden=not self.asked(said)
            )
        width_px = LETTER_PX * len(self.label) + 80
        return [ControlPart("text", self.label, str(held), not self.asked(said), width_px=width_px)]

    def moved(self, held: object, part: ControlPart, to: object) -> object:
        """The number dragged to, or what was typed."""
        return size_moved(held, part, to)


@dataclass(frozen=True, kw_only=True)
class Sizes(Field):
    """A size for each of some names, which depend on other answers; sizes of names that have gone are remembered."""

    types, means = (Mapping,), "a size for each name"
    names: Callable[[Said], Sequence[str]]

    def parts(self, held: Mapping[str, object], said: Said) -> list[ControlPart]:
        """A slider and a text field for each name; always MOST_NAMES of them, the rest hidden."""
        names = [*self.names(said), *[""] * MOST_NAMES][:MOST_NAMES]
        sizes = ((name, held.get(name, NEW_NAMES_SIZE)) for name in names)
        return [
            part
            for name, size in sizes
            for part in size_parts(name, size, 145, 64, hidden=not name)
        ]

    def moved(self, held: Mapping[str, object], part: ControlPart, to: object) -> dict[str, object]:
        """The size of that name changes."""
        size = held.get(part.label, NEW_NAMES_SIZE)
        return {**held, part.label: size_moved(size, part, to)}


@dataclass(frozen=True, kw_only=True)
class OneOf(Field):
    """One of several options: on buttons, in a menu if they have long names, or on a slider if they have an order.

    `options` are the values by their names.
    """

    options: Mapping[str, object]
    menu: bool = False
    slider_px: int = 0

    @property
    def kind(self) -> str:
        """What the options are shown as."""
        return "slider" if self.slider_px else "menu" if self.menu else "buttons"

    def held(self, said: object) -> object:
        """The option's value; ValueError if there is no such option."""
        if said not in self.options.values():
            raise ValueError(f"{self.label} is one of {', '.join(self.options)}; not {said!s:.40}.")
        return said

    def parts(self, held: object, said: Said) -> list[ControlPart]:
        """One part, whose value is the option's name."""
        name = next(name for name, option in self.options.items() if option == held)
        return super().parts(name, said)

    def _look(self, said: Said) -> dict[str, object]:
        return {"options": tuple(self.options), "width_px": self.slider_px}

    def moved(self, held: object, part: ControlPart, to: object) -> object:
        """The value of the option of that name."""
        return self.options.get(to)


@dataclass(frozen=True, kw_only=True)
class Several(Field):
    """A tick box for each option; the answer has the ticked names, in order."""

    options: Sequence[str]

    def held(self, said: object) -> tuple[str, ...]:
        """The ticked names in the order of the options; ValueError if there is no such name."""
        some = said if isinstance(said, list | tuple) else [said]
        if strangers := [name for name in some if name not in self.options]:
            raise ValueError(
                f"There is no {strangers[0]!s:.40} here. There are: {', '.join(self.options)}."
            )
        return tuple(name for name in self.options if name in some)

    def parts(self, held: Sequence[str], said: Said) -> list[ControlPart]:
        """A tick box for each option."""
        return [
            ControlPart("tick", name, name in held, not self.asked(said)) for name in self.options
        ]

    def moved(self, held: Sequence[str], part: ControlPart, to: object) -> tuple[str, ...]:
        """The ticked names, with that one added or removed."""
        others = [name for name in held if name != part.label]
        return self.held([*others, part.label] if to else others)


@dataclass(frozen=True, kw_only=True)
class Whole(Field):
    """A whole number on a slider. Its largest value may depend on other answers; a number that is the largest stays so.

    With `play`, a button beside it moves it to its end, step by step.
    """

    kind, types, means = "slider", (int,), "a whole number"
    least: int
    most: int | Callable[[Said], int]
    step: int = 1
    width_px: int = 300
    play: bool = False

    def end(self, said: Said) -> int:
        """The largest that can be chosen."""
        return self.most(said) if callable(self.most) else self.most

    def held(self, said: object) -> int:
        """The number, raised to `least` if it is smaller. The session takes care of the other end."""
        return max(self.least, super().held(said))

    def parts(self, held: object, said: Said) -> list[ControlPart]:
        """The slider, and perhaps the button beside it."""
        (slider,) = super().parts(held, said)
        return [slider, slider._replace(kind="play")] if self.play else [slider]

    def _look(self, said: Said) -> dict[str, object]:
        return {
            "least": self.least,
            "most": self.end(said),
            "step": self.step,
            "width_px": self.width_px,
        }


@dataclass(frozen=True, kw_only=True)
class Tick(Field):
    """A tick box, or a button that stays pressed: True or False."""

    types, means = (bool,), "True or False"
    kind: str = "tick"


@dataclass(frozen=True, kw_only=True)
class Drawn(Field):
    """A guess that is set in the picture: for each mark a level, 0 to `levels - 1`, or None while it is not set.

    Its marks are moved in the picture. `says(mark, level)` is the level of mark number `mark` in words.
    """

    types, means = (list, tuple), "a level for each mark"
    marks: Sequence[str]
    levels: int
    says: Callable[[int, int], str]

    def held(self, said: object) -> tuple[int | None, ...]:
        """The levels; ValueError if one is none, or if there are not as many as marks."""
        held = tuple(super().held(said))
        legal = (one is None or (type(one) is int and 0 <= one < self.levels) for one in held)
        if len(held) != len(self.marks) or not all(legal):
            what = f"{len(self.marks)} marks, each None or a whole number from 0 to {self.levels - 1:,}"
            raise ValueError(f"{self.label} has {what}; {reprlib.repr(said)} is not that.")
        return held


@dataclass(frozen=True, kw_only=True)
class Typed(Field):
    """A text field. The lab says what is legal; `examples` are."""

    kind, types, means = "text", (str,), "a text"
    examples: Sequence[str]
    placeholder: str = ""
    width_px: int = 200

    def _look(self, said: Said) -> dict[str, object]:
        return {"placeholder": self.placeholder, "width_px": self.width_px}


# Each returns a dataclass's field, and says Any of it, as dataclasses.field does.


def said_is(name: str, answer: object) -> Callable[[Said], bool]:
    """A `when`: the field is asked only if field `name` has that answer."""
    return lambda said: said[name] == answer


def _asks(one: Field) -> object:
    return dataclasses.field(default_factory=lambda: one.default, metadata={"field": one})


def size(label: str, default: int, **options: object) -> Any:
    """A size, with a slider unless `slider=False`."""
    return _asks(Size(label=label, default=default, **options))


def sizes(label: str, default: Mapping[str, int], names: Callable[[Said], Sequence[str]]) -> Any:
    """A size for each name."""
    return _asks(Sizes(label=label, default=dict(default), names=names))


def choice(
    label: str, options: Sequence[str] | Mapping[str, object], default: object, **more: object
) -> Any:
    """A choice; a sequence of options names each by its str()."""
    named = options if isinstance(options, Mapping) else {str(one): one for one in options}
    return _asks(OneOf(label=label, options=named, default=default, **more))


def among(
    label: str, options: Sequence[Number], default: Number, *, width_px: int, **more: object
) -> Any:
    """A choice of numbers, on a slider."""
    return choice(label, {f"{n:g}": n for n in options}, default, slider_px=width_px, **more)


def several(label: str, options: Sequence[str], default: Sequence[str], **more: object) -> Any:
    """Tick boxes; the answer has the names of those that are ticked."""
    some = tuple(options)
    return _asks(Several(label=label, heading=label, options=some, default=tuple(default), **more))


def whole(
    label: str, default: int, least: int, most: int | Callable[[Said], int], **more: object
) -> Any:
    """A whole number from `least` to `most`, which may depend on other answers."""
    return _asks(Whole(label=label, default=default, least=least, most=most, **more))


def tick(label: str, default: bool, **more: object) -> Any:
    """A tick box."""
    return _asks(Tick(label=label, default=default, **more))


def reveal(**more: object) -> Any:
    """The button *Show*, of a field named `shown`: before it is pressed, nothing measured is in the view."""
    return _asks(Tick(label="Show", default=False, kind="toggle", **more))


def drawn(label: str, *, marks: Sequence[str], levels: int, says: Callable[[int, int], str]) -> Any:
    """A guess that is set in the picture. At first no mark is set."""
    nothing = (None,) * len(marks)
    return _asks(Drawn(label=label, default=nothing, marks=tuple(marks), levels=levels, says=says))


def typed(label: str, default: str, *, examples: Sequence[str], **more: object) -> Any:
    """A text field."""
    return _asks(Typed(label=label, default=default, examples=tuple(examples), **more))
