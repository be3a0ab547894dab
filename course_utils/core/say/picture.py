"""The picture of guesses beside what was measured, as HTML that needs no style sheet or script.

All places are in percent of the width, and words keep their size, so that the picture can be read
on a phone as on a projector. Each label has a row to itself, so that labels never overlap, however
close the numbers are. A mark and its label have the same sign.

Where a name or a comment has "guess", that is the reader's number; "predicted" and "measured" are
the other two, whatever their heads in the comparison. `x != x` is true for NaN alone.
"""

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from course_utils.core.colours import COLOURS
from course_utils.core.say import spoken
from course_utils.core.say.axis import LEFT, RIGHT, Axis, axis_for
from course_utils.core.say.closeness import CLOSE, FAR, MISSED, POWER, SPOT_ON
from course_utils.core.say.guesses import Guess
from course_utils.core.say.language import translated
from course_utils.core.say.wording import Number, as_float, in_words, letters_wide, listed

COLOUR_OF_WORD = {
    SPOT_ON: "#00875f",
    CLOSE: "#00875f",
    POWER: "#9a6700",
    FAR: COLOURS["alarm"],
    MISSED: COLOURS["alarm"],
}
# The sign of each number and its colour. The guess has the colour of the words around it.
SIGNS = {
    "guess": ("○", "currentColor"),
    "predicted": ("◆", COLOURS["predicted"]),
    "measured": ("●", COLOURS["measured"]),
}
NARROWEST_PX = 320  # the width of a picture on a phone, on which each label still fits
LETTER_PX = 7  # the usual width of a letter in a label
SMALL_LETTER_PX = 6  # the same in the words at a tick
# By these factors a guess may be too large or too small, and a picture made beforehand has a place
# for it.
FACTORS = (10, 1e3, 1e9)
# Styles: of an option with a word below, and of the row of all options.
_CHIP = "display:inline-flex;flex-direction:column;align-items:center;gap:5px;line-height:1.3"
_CHIPS = "display:flex;flex-wrap:wrap;gap:10px 18px;padding:6px 4px;font-size:14px"


@dataclass(frozen=True)
class Shown:
    """A guess with the number that was predicted and the one that was measured.

    `heads` are the names of the other two numbers, such as ("predicted", "measured"). If they are
    two estimates, `are_estimates`, and what the guess is judged by lies between them.
    """

    guess: Guess
    predicted: Number
    measured: Number
    heads: tuple[str, str]
    are_estimates: bool = False

    @property
    def numbers(self) -> dict[str, float]:
        """The three numbers, by the names "guess", "predicted" and "measured"."""
        numbers = (self.guess.said, self.predicted, self.measured)
        return dict(zip(SIGNS, map(as_float, numbers), strict=True))  # SIGNS has these three names


def _axis_of(several: Sequence[Shown]) -> Axis:
    """Return the axis that has a place for all numbers of these guesses."""
    numbers = []
    for shown in several:
        numbers += [x for x in shown.numbers.values() if x == x]  # without NaN
    return axis_for(numbers, several[0].guess.unit)


def of_numbers(several: Sequence[Shown]) -> str:
    """Return one picture of the guesses, with a line for each guess and a mark for each number.

    The measured number of a single guess is large. Several guesses share one axis, whose numbers
    are below the last line.
    """
    return _drawn(several, _axis_of(several))


def for_any_guess(several: Sequence[Shown]) -> list[tuple[Axis, str]]:
    """Return pictures for guesses that are made later, on a page, each with its axis.

    The guesses in `several` only stand for those to come, and their own numbers are not used. A
    page takes the first picture whose axis has a place for all guesses, and moves the marks of the
    guesses, which have the attribute data-guess.
    """
    numbers = []
    for shown in several:
        beside_the_guess = (shown.numbers["predicted"], shown.numbers["measured"])
        numbers += [x for x in beside_the_guess if x == x]  # without NaN
    sizes = [x for x in numbers if 0 < x < math.inf] or [1.0]  # some number, if there is none
    unit = several[0].guess.unit
    # `sizes` has a number above 0 even where `numbers` has none.
    axes = [axis_for([*numbers, *sizes], unit)]  # first, the axis of these numbers alone
    for factor in FACTORS:  # for guesses that are too high, or too low, by up to that factor
        ends = (max(sizes) * factor, min(sizes) / factor)
        axes += [axis_for([*numbers, end], unit) for end in ends]
        if len(several) > 1:  # one guess may be too low, and another one too high
            axes.append(axis_for([*numbers, *ends], unit))
    axes.append(axis_for([*numbers, *sizes, 0.0], unit))  # for a guess of 0, too
    each_once = dict.fromkeys(axes)  # a dictionary has each key once, and keeps their order
    return [(axis, _drawn(several, axis)) for axis in each_once]


def _drawn(several: Sequence[Shown], axis: Axis) -> str:
    """Return the picture of the guesses on that axis."""
    unit = axis.unit_for(several[0].guess.unit)
    several = [replace(shown, guess=replace(shown.guess, unit=unit)) for shown in several]
    is_alone = len(several) == 1
    parts = [] if is_alone else [_key(several[0])]
    for shown in several:
        is_last = shown is several[-1]
        parts.append(_heading(shown, is_alone))
        parts.append(_line(shown, axis, has_labels=is_alone, has_ticks=is_last))
    return f'<div style="max-width:720px;margin:4px 0">{"".join(parts)}</div>'


def of_choice(guess: Guess, among: Sequence[str]) -> str:
    """Return the options in a row: the measured one is filled, and the reader's has an outline."""
    measured = COLOURS["measured"]
    chips = []
    for option in among:
        styles = ["padding:3px 12px", "border-radius:14px"]
        names = []
        if option == guess.measured:
            styles.append(f"background:{measured};color:#fff")
            names.append(translated(guess.kind))
        if option == guess.said:
            styles.append("outline:2px dashed currentColor;outline-offset:2px")
            names.insert(0, translated("your guess"))  # first if both are the same option
        if not names:
            styles.append("box-shadow:inset 0 0 0 1px #7f8a94")
        words_below = html.escape(listed(names)) or "&nbsp;"  # so that all options are as high
        below = f'<span style="font-size:12px">{words_below}</span>'
        chip = f'<span style="{";".join(styles)}">{html.escape(option)}</span>'
        chips.append(f'<span style="{_CHIP}">{chip}{below}</span>')
    words = html.escape(spoken.of_choice(guess))
    row = f'<div role="img" aria-label="{words}" style="{_CHIPS}">{"".join(chips)}</div>'
    heading = _large(guess.measured, translated(guess.kind), guess.word)
    return f'<div style="max-width:720px;margin:4px 0">{heading}{row}</div>'


def _heading(shown: Shown, is_alone: bool) -> str:
    """Return the line above a guess's axis; if the guess is alone, its measured number is large."""
    guess = shown.guess
    _, kind = map(translated, shown.heads)  # such as "measured" or "reported"
    measured = in_words(shown.measured, guess.unit, guess.digits)
    if shown.are_estimates:
        measured = _estimates_text(shown.predicted, shown.measured, guess.unit)
    if is_alone:
        return _large(measured, kind, guess.word)
    your_guess = translated(", your guess {said}", said=in_words(guess.said, guess.unit))
    return (  # on a page, a script puts the reader's guess into the parts with data-guess
        f'<div style="margin-top:6px"><span>{html.escape(guess.asked)}: '
        f'<b>{html.escape(measured)}</b><span data-guess="said">'
        f"{html.escape(your_guess)}</span></span> "
        f'{_in_colour(guess.word, 14)} <span data-guess="how">'
        f"{html.escape(guess.difference + guess.hint)}</span></div>"
    )


def _estimates_text(one: Number, other: Number, unit: str) -> str:
    """Return two estimates as a range, the smaller first; one of them if both are the same.

    >>> _estimates_text(31.7, 19.23, "days"), _estimates_text(4, 4, "days")
    ('19.2 days to 31.7 days', '4 days')
    """
    least, most = (in_words(n, unit) for n in sorted((one, other)))
    return least if least == most else translated("{least} to {most}", least=least, most=most)


def _large(measured: str, kind: str, word: str) -> str:
    """Return the measured value in large letters, how it was found, and the word for the guess."""
    return (
        '<div style="display:flex;flex-wrap:wrap;align-items:baseline;gap:0 10px;line-height:1.3">'
        f'<span style="font-size:30px;font-weight:bold">{html.escape(measured)}</span>'
        f'<span style="font-size:14px">{html.escape(kind)}</span>{_in_colour(word, 20)}</div>'
    )


def _in_colour(word: str, size: int) -> str:
    """Return the word for a guess, in white on its colour: readable on light and dark pages.

    `size` is the font size in pixels.
    """
    return (
        f'<span data-guess="word" style="background:{COLOUR_OF_WORD[word]};color:#fff;'
        f"font-weight:bold;font-size:{size}px;border-radius:4px;padding:0 8px;"
        f'white-space:nowrap">{html.escape(translated(word))}</span>'
    )


def _key(shown: Shown) -> str:
    """Return the legend of several axes, which says what each sign stands for."""
    words = []
    names = map(translated, ("your guess", *shown.heads))
    for (sign, colour), name in zip(SIGNS.values(), names, strict=True):
        words.append(f'<span style="color:{colour}">{sign}</span> {html.escape(name)}')
    return f'<div style="font-size:13px">{" &nbsp; ".join(words)}</div>'


def _line(shown: Shown, axis: Axis, *, has_labels: bool, has_ticks: bool) -> str:
    """Return one axis with a guess's marks as SVG; only the last axis of a picture has ticks."""
    # `y` is where the axis is, in pixels from the top. Above it is the guess's label, on the line
    # 14, or without labels half of the ring that marks the guess.
    y = 32 if has_labels else 12
    parts = [
        f'<line x1="{LEFT}%" x2="{RIGHT}%" y1="{y}" y2="{y}" stroke="#7f8a94" stroke-width="2"/>'
    ]
    height = y + 12
    if has_ticks:
        parts += _ticks(axis, shown.guess.unit, y)
        height += 16  # the numbers at the ticks
    parts += _marks(shown, axis, y)
    if has_labels:
        below = list(_labels_below(shown))
        words = translated("your guess")
        parts.append(_label("guess", words, _short(shown, "guess"), axis, shown, 14))
        for name, words in below:
            height += 20  # a row for each label, whose text stands 6 pixels above the row's end
            parts.append(_label(name, words, _short(shown, name), axis, shown, height - 6))
    words = html.escape(
        spoken.of_numbers(shown.guess, shown.predicted, shown.measured, shown.heads)
    )
    return (
        f'<svg role="img" aria-label="{words}" width="100%" height="{height}" '
        'style="display:block;overflow:visible;font-family:inherit">'
        f"{''.join(parts)}</svg>"
    )


def _ticks(axis: Axis, unit: str, y: int) -> Iterator[str]:
    """Yield the ticks of the axis and the numbers below them, as many as fit on a phone."""
    places = [(axis.at(x), _tick_words(x, unit)) for x in axis.ticks]
    longest = max((len(words) for _, words in places), default=0)
    tick_px = (longest + 2) * SMALL_LETTER_PX  # with some space between two
    fitting = max(2, NARROWEST_PX // tick_px)
    every = math.ceil(len(places) / fitting)
    places = places[::every]
    if axis.left > LEFT:
        places.append((LEFT, "0"))
    if axis.right < RIGHT:
        places.append((RIGHT, "∞"))
    for place, words in places:
        yield f'<line x1="{place:.2f}%" x2="{place:.2f}%" y1="{y}" y2="{y + 6}" stroke="#7f8a94"/>'
        yield (
            f'<text x="{place:.2f}%" y="{y + 20}" text-anchor="middle" '
            f'style="font-size:11px;fill:currentColor;opacity:0.8">{html.escape(words)}</text>'
        )


def _tick_words(x: float, unit: str) -> str:
    """Return the number at a tick, with its unit if it cannot be read without, as in "1 MB"."""
    words = in_words(x, unit)
    # In these units, `in_words` takes another prefix: 1e6 bytes are "1 MB", of which 1 says little.
    is_scaled = unit in ("bytes", "GB", "FLOPs", "FLOP/s", "TFLOP/s", "seconds", "s")
    return words if is_scaled or words.endswith(" %") else in_words(x)


def _short(shown: Shown, name: str) -> str:
    """Return the number of a mark as its label has it: with its unit if that is short enough."""
    guess = shown.guess
    number = {"guess": guess.said, "predicted": shown.predicted, "measured": shown.measured}[name]
    digits = None if name == "guess" else guess.digits
    words = in_words(number, guess.unit, digits)
    is_short = len(words) <= 10  # letters: a longer label may not fit on a phone
    return words if is_short else in_words(number, "", digits)


def _labels_below(shown: Shown) -> Iterator[tuple[str, str]]:
    """Yield the mark and the words of each label below the axis; equal numbers have one label."""
    first, second = map(translated, shown.heads)
    if _is_one_mark(shown):
        yield "measured", first if first == second else listed([first, second])
        return
    yield "measured", second
    yield "predicted", first


def _is_one_mark(shown: Shown) -> bool:
    """Whether what was predicted and what was measured are the same, as they are written."""
    return _short(shown, "predicted") == _short(shown, "measured")


def _label(name: str, words: str, number: str, axis: Axis, shown: Shown, y: int) -> str:
    """Return a mark's label as SVG: its sign, words and number, near the mark.

    The label is not cut, even where the picture is as narrow as it may be. `name` is "guess",
    "predicted" or "measured".
    """
    sign, colour = SIGNS[name]
    if name == "measured" and _is_one_mark(shown):
        first_sign, first_colour = SIGNS["predicted"]
        signs = f'<tspan fill="{first_colour}">{first_sign}</tspan>'
        signs += f'<tspan fill="{colour}">{sign}</tspan>'
    else:
        signs = f'<tspan fill="{colour}">{sign}</tspan>'
    x = _place(axis, shown.numbers[name])
    letters = letters_wide(words) + len(number) + 4  # 4 for the signs and spaces
    width = letters * LETTER_PX / NARROWEST_PX * 100  # in percent of the narrowest picture
    anchor = "middle"
    if x - width / 2 < 0:  # centred, it would be cut on the left
        anchor = "start"
        # It begins 1 % before the mark, or farther left if its end would be cut otherwise.
        x = min(x - 1, max(0, 100 - width))
    elif x + width / 2 > 100:  # centred, it would be cut on the right
        anchor = "end"
        # It ends 1 % behind the mark, or farther right if its beginning would be cut otherwise.
        x = max(x + 1, min(100, width))
    of_guess = ' data-guess="label"' if name == "guess" else ""
    return (
        f'<text{of_guess} x="{max(0, min(100, x)):.2f}%" y="{y}" text-anchor="{anchor}" '
        f'style="font-size:13px;fill:currentColor">{signs} {html.escape(words)} '
        f'<tspan style="font-weight:bold">{html.escape(number)}</tspan></text>'
    )


def _place(axis: Axis, x: float) -> float:
    """Return the place of a number's label; that of NaN, which has no mark, is on the left."""
    return LEFT if math.isnan(x) else axis.at(x)


def _marks(shown: Shown, axis: Axis, y: int) -> Iterator[str]:
    """Yield the marks. The guess comes last and is a ring, so that nothing below it is hidden."""
    numbers = shown.numbers
    for name in ("predicted", "measured", "guess"):
        if math.isnan(numbers[name]):  # it has no place
            continue
        place = f"{axis.at(numbers[name]):.2f}%"
        _, colour = SIGNS[name]
        if name == "predicted":
            yield (
                f'<svg x="{place}" y="{y}" overflow="visible">'
                f'<path d="M0-9 9 0 0 9-9 0z" fill="{colour}"/></svg>'
            )
        elif name == "measured":
            yield f'<circle cx="{place}" cy="{y}" r="5.5" style="fill:{colour}"/>'
        else:
            yield (
                f'<circle data-guess="mark" cx="{place}" cy="{y}" r="10" '
                f'style="fill:none;stroke:{colour};stroke-width:2.5"/>'
            )
