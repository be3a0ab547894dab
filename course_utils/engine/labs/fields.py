"""The questions that a lab can ask, and their legal answers. Panel, page and tests all use them.

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
from course_utils.core.say.language import template, translated
from course_utils.engine.labs.control_parts import (
    LETTER_PX,
    ControlPart,
    size_moved,
    size_of,
    size_parts,
)

NOT_AN_OPTION = template("{label} is one of {options}; not {value}.")
HIDE = template("Hide")  # the name of the button *Show* once it was pressed
Said = Mapping[str, object]  # what all controls of a lab hold, by the names of their fields


@dataclass(frozen=True, kw_only=True)
class Field:
    """One question. While `when` returns False, it is not asked, and its default is the answer.

    The control of a field holds what the reader has set or typed, which may be illegal.
    """

    kind: ClassVar[str] = ""  # that of the ControlPart; empty if the field has no such part
    types: ClassVar[tuple[type, ...]]  # the types that the control can hold
    refusal: ClassVar[str]  # the sentence on a value of another type, which says what an answer is
    label: str
    default: object
    when: Callable[[Said], bool] | None = None
    heading: str = ""  # the words in front of the control, if it has several parts

    def asked(self, said: Said) -> bool:
        """Whether the question is asked, given what the controls hold."""
        return self.when is None or self.when(said)

    def held(self, value: object) -> object:
        """Return what the control holds when set to this value; ValueError if it cannot be set."""
        if not isinstance(value, self.types):
            refused = translated(self.refusal, label=self.label, value=reprlib.repr(value))
            raise ValueError(refused)
        return value

    def read(self, held: object) -> object:
        """Return the answer that the control holds; ValueError if what it holds is no answer."""
        return held

    def parts(self, held: object, said: Said) -> list[ControlPart]:
        """Return the parts of the control. `said` is what all controls hold."""
        if not self.kind:
            return []
        part = ControlPart(
            kind=self.kind,
            label=self.label,
            value=held,
            hidden=not self.asked(said),
            **self._look(said),
        )
        return [part]

    def _look(self, said: Said) -> dict[str, object]:
        """Return further arguments of ControlPart, such as the part's options and width."""
        return {}

    def moved(self, held: object, part: ControlPart, to: object) -> object:
        """Return what the control holds after `part` was moved to `to`; before, it held `held`."""
        return to


@dataclass(frozen=True, kw_only=True)
class Size(Field):
    """A whole number from 1 to 2^20, dragged or typed; what is typed stays as it is typed."""

    types = (int, str)
    refusal = template("{label} cannot be {value}. It is a size, like 1024 or 2^10.")
    slider: bool = True
    slider_px: int = 170

    def read(self, held: object) -> int:
        """Return the number that was dragged or typed; ValueError if it is no size."""
        return size_of(self.label, held)

    def parts(self, held: object, said: Said) -> list[ControlPart]:
        """Return a slider and a text field, or the text field alone."""
        hidden = not self.asked(said)
        name_px = LETTER_PX * len(self.label)
        if self.slider:  # with 12 px of space behind its name
            return size_parts(self.label, held, self.slider_px, name_px + 12, hidden=hidden)
        field = ControlPart(
            kind="text",
            label=self.label,
            value=str(held),
            hidden=hidden,
            width_px=name_px + 80,  # 80 px for the text
        )
        return [field]

    def moved(self, held: object, part: ControlPart, to: object) -> object:
        """Return the number that the slider was dragged to, or the text that was typed."""
        return size_moved(held, part, to)


@dataclass(frozen=True, kw_only=True)
class OneOf(Field):
    """One of several options.

    They are on buttons; with `menu`, in a menu; or with `slider_px`, on a slider of that width.
    `options` maps the names of the options to their values.
    """

    options: Mapping[str, object]
    menu: bool = False
    slider_px: int = 0

    @property
    def kind(self) -> str:
        """Return the kind of ControlPart that shows the options."""
        if self.slider_px:
            return "slider"
        return "menu" if self.menu else "buttons"

    def held(self, value: object) -> object:
        """Return the value; ValueError, with the options' names, if no option has it."""
        if value not in self.options.values():
            refused = translated(
                NOT_AN_OPTION,
                label=self.label,
                options=", ".join(self.options),
                value=f"{value!s:.40}",
            )
            raise ValueError(refused)
        return value

    def parts(self, held: object, said: Said) -> list[ControlPart]:
        """Return one part, whose value is the name of the option that has the value `held`."""
        name = next(name for name, option in self.options.items() if option == held)
        return super().parts(name, said)

    def _look(self, said: Said) -> dict[str, object]:
        return {"options": tuple(self.options), "width_px": self.slider_px}

    def moved(self, held: object, part: ControlPart, to: object) -> object:
        """Return the value of the option named `to`; else None, which `held` refuses."""
        return self.options.get(to)


@dataclass(frozen=True, kw_only=True)
class Several(Field):
    """A tick box for each option; the answer has the ticked names, in order."""

    options: Sequence[str]

    def held(self, value: object) -> tuple[str, ...]:
        """Return the ticked names in the order of the options; ValueError if one is no option."""
        names = value if isinstance(value, list | tuple) else [value]
        for name in names:
            if name not in self.options:
                refused = translated(
                    "There is no {name} here. There are: {names}.",
                    name=f"{name!s:.40}",
                    names=", ".join(self.options),
                )
                raise ValueError(refused)
        return tuple(option for option in self.options if option in names)

    def parts(self, held: Sequence[str], said: Said) -> list[ControlPart]:
        """Return a tick box for each option."""
        hidden = not self.asked(said)
        parts = []
        for option in self.options:
            is_ticked = option in held
            parts.append(ControlPart("tick", option, is_ticked, hidden))
        return parts

    def moved(self, held: Sequence[str], part: ControlPart, to: object) -> tuple[str, ...]:
        """Return the ticked names, with the part's name added if `to` is True, else removed."""
        names = [name for name in held if name != part.label]
        if to:
            names.append(part.label)
        return self.held(names)


@dataclass(frozen=True, kw_only=True)
class Whole(Field):
    """A whole number on a slider, whose largest value may depend on other answers.

    A number that is at the largest value stays there when that value changes. With `play`, a
    button beside the slider moves the slider to its end, step by step.
    """

    kind = "slider"
    types = (int,)
    refusal = template("{label} cannot be {value}. It is a whole number.")
    least: int
    most: int | Callable[[Said], int]
    step: int = 1
    width_px: int = 300
    play: bool = False

    def end(self, said: Said) -> int:
        """Return the largest value that can be chosen, given what the controls hold."""
        return self.most(said) if callable(self.most) else self.most

    def held(self, value: object) -> int:
        """Return the number, or `least` if the number is smaller.

        The session lowers a number above the largest value, which may depend on other answers.
        """
        number = super().held(value)
        return max(self.least, number)

    def parts(self, held: object, said: Said) -> list[ControlPart]:
        """Return the slider, and with `play` the button beside it."""
        (slider,) = super().parts(held, said)
        if not self.play:
            return [slider]
        return [slider, slider._replace(kind="play")]

    def _look(self, said: Said) -> dict[str, object]:
        return {
            "least": self.least,
            "most": self.end(said),
            "step": self.step,
            "width_px": self.width_px,
        }


@dataclass(frozen=True, kw_only=True)
class Tick(Field):
    """A tick box: True or False."""

    types = (bool,)
    refusal = template("{label} cannot be {value}. It is True or False.")
    kind = "tick"


@dataclass(frozen=True, kw_only=True)
class Reveal(Tick):
    """A button that stays pressed. Its name says what the next press does."""

    kind = "toggle"

    def parts(self, held: bool, said: Said) -> list[ControlPart]:
        """Return the button, named *Hide* while the answer is shown."""
        (button,) = super().parts(held, said)
        return [button._replace(label=HIDE) if held else button]


@dataclass(frozen=True, kw_only=True)
class Drawn(Field):
    """A guess that the reader draws: marks are moved in the picture, so there is no other control.

    The answer has a level for each mark, from 0 to `levels - 1`, or None while the mark is not set.
    `fewer` returns how many levels there are, where other answers leave fewer. `says(mark, level)`
    returns the level of mark number `mark` in words. `about` names the fields that the question is
    about: when one of them changes, so does the question, and former marks are no answer to it.
    """

    types = (list, tuple)
    refusal = template("{label} cannot be {value}. It is a level for each mark.")
    marks: Sequence[str]
    levels: int
    says: Callable[[int, int], str]
    about: Sequence[str] = ()
    fewer: Callable[[Said], int] | None = None

    def question(self, said: Said) -> tuple[object, ...]:
        """Return what the controls ask now: the values of those that the question is about."""
        return tuple(said[name] for name in self.about)

    def top(self, said: Said) -> int:
        """Return the highest level that a mark can have, given what the controls hold."""
        return (self.fewer(said) if self.fewer else self.levels) - 1

    def held(self, value: object) -> tuple[int | None, ...]:
        """Return the levels; ValueError if one is illegal, or if there are not as many as marks."""
        levels = tuple(super().held(value))
        are_legal = all(self._is_legal(level) for level in levels)
        if len(levels) != len(self.marks) or not are_legal:
            refused = translated(
                "{label} has {count} marks, each None or a whole number from 0 to {most}; "
                "{value} is not that.",
                label=self.label,
                count=len(self.marks),
                most=f"{self.levels - 1:,}",
                value=reprlib.repr(value),
            )
            raise ValueError(refused)
        return levels

    def _is_legal(self, level: object) -> bool:
        is_int = type(level) is int  # not isinstance, since True is an int
        return level is None or (is_int and 0 <= level < self.levels)


@dataclass(frozen=True, kw_only=True)
class Typed(Field):
    """A text field. The lab itself checks what is typed there."""

    kind = "text"
    types = (str,)
    refusal = template("{label} cannot be {value}. It is a text.")
    examples: Sequence[str]  # of legal texts
    placeholder: str = ""
    width_px: int = 200

    def _look(self, said: Said) -> dict[str, object]:
        return {"placeholder": self.placeholder, "width_px": self.width_px}


# The functions below make the fields of a lab. What they return is annotated as Any, as
# dataclasses.field's is, so that the lab can annotate the field with the type of its answer.


def said_is(name: str, answer: object) -> Callable[[Said], bool]:
    """Return a `when` by which a question is asked only while the field `name` has that answer."""

    def when(said: Said) -> bool:
        return said[name] == answer

    return when


def asks(question: Field) -> Any:
    """Return a dataclass's field with the question's default, and the question in its metadata."""
    return dataclasses.field(default_factory=lambda: question.default, metadata={"field": question})


def size(label: str, default: int, **options: object) -> Any:
    """Ask for a size, with a slider unless `slider=False`."""
    return asks(Size(label=label, default=default, **options))


def choice(
    label: str, options: Sequence[str] | Mapping[str, object], default: object, **more: object
) -> Any:
    """Ask for one option. If `options` has no names, an option's name is the str() of its value."""
    if not isinstance(options, Mapping):
        options = {str(option): option for option in options}
    return asks(OneOf(label=label, options=options, default=default, **more))


def among(
    label: str, options: Sequence[Number], default: Number, *, width_px: int, **more: object
) -> Any:
    """Ask for one of several numbers, on a slider."""
    named = {f"{number:g}": number for number in options}
    return choice(label, named, default, slider_px=width_px, **more)


def several(label: str, options: Sequence[str], default: Sequence[str], **more: object) -> Any:
    """Ask which options are ticked; the answer has their names."""
    question = Several(
        label=label,
        heading=label,  # the tick boxes themselves have the names of the options
        options=tuple(options),
        default=tuple(default),
        **more,
    )
    return asks(question)


def whole(
    label: str, default: int, least: int, most: int | Callable[[Said], int], **more: object
) -> Any:
    """Ask for a whole number from `least` to `most`, which may depend on other answers."""
    return asks(Whole(label=label, default=default, least=least, most=most, **more))


def tick(label: str, default: bool, **more: object) -> Any:
    """Ask for True or False, with a tick box."""
    return asks(Tick(label=label, default=default, **more))


def reveal(**more: object) -> Any:
    """Make the button *Show*, for a field `shown`: while it is False, nothing measured is shown."""
    return asks(Reveal(label=template("Show"), default=False, **more))


def drawn(label: str, *, marks: Sequence[str], **more: object) -> Any:
    """Ask for a guess that is drawn in the picture. At first no mark is set."""
    not_set = (None,) * len(marks)
    return asks(Drawn(label=label, default=not_set, marks=tuple(marks), **more))


def typed(label: str, default: str, *, examples: Sequence[str], **more: object) -> Any:
    """Ask for a text. `examples` are legal ones."""
    return asks(Typed(label=label, default=default, examples=tuple(examples), **more))
