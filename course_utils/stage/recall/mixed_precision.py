"""Questions of notebook 7: which numbers need their 32 bits."""

import math

from course_utils.core import accountant, floats
from course_utils.core.predict import lossless_powers
from course_utils.core.say import in_words, listed, number_text
from course_utils.stage.recall.question import WITHIN, Asked, Mistake, Question

UPDATES = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
ASKED_AT_ONCE = 4  # of them
# Recipes that are asked for, in words, and how many bytes they take for each parameter.
IN_WORDS = {
    "bf16+master adamw": "Weights and gradients are in bf16, a master copy and AdamW's two averages"
    " in fp32.",
    "bf16+master adamw, fp32 gradients": "Weights are in bf16; gradients, a master copy and AdamW's"
    " two averages in fp32.",
    "bf16 adamw": "Weights, gradients and AdamW's two averages are all in bf16.",
    "bf16+master momentum": "Weights and gradients are in bf16, a master copy and momentum's buffer"
    " in fp32.",
}


def _arrive(weight: float, first: int) -> Asked | None:
    updates = UPDATES[first : first + ASKED_AT_ONCE]
    gap = floats.spacing(weight, "bf16")
    arriving = [update for update in updates if floats.stored(weight + update, "bf16") != weight]
    whole_gaps = sum(update >= gap for update in updates)
    at_one = sum(update > 2**-8 for update in updates)
    if not 0 < len(arriving) < ASKED_AT_ONCE:
        return None
    listed_updates = listed([f"{update:g}" for update in updates])
    return Asked(
        f"A weight in bf16 is {weight:g}. How many of the updates {listed_updates}, each added "
        "alone, change it?",
        answer=len(arriving),
        unit=f"of {ASKED_AT_ONCE}",
        derivation=f"The gap above {weight:g} is {number_text(gap)}, and an update arrives if it "
        f"is more than half of that, {number_text(gap / 2)}: {len(arriving)} of them, from "
        f"{min(arriving):g} on.",
        mistakes=(
            Mistake(whole_gaps, "More than half a gap is enough, because it is rounded up."),
            Mistake(at_one, "That is so at a weight of 1. The gap grows with the weight."),
        ),
    )


def _stalls(weight: float, fmt: str) -> Asked:
    gap = floats.spacing(weight, fmt)
    form = floats.FORMATS[fmt]
    return Asked(
        f"A weight in {form.label} is {weight:g}. What is the largest update that can be added to "
        "it without changing it?",
        answer=gap / 2,
        derivation=f"The gap is 2^({math.floor(math.log2(weight))} - {form.fraction_bits}) = "
        f"{number_text(gap)}. Up to half of it is rounded away (at just half, the tie goes to "
        f"the even neighbour, here the weight): {number_text(gap / 2)}.",
        mistakes=(
            Mistake(gap, "That is the whole gap. Beyond half of it, the sum is rounded up."),
            Mistake(form.epsilon / 2, "That is so between 1 and 2. The gap grows with the weight."),
        ),
    )


def _drift(update: float, times: int) -> Asked | None:
    gap = 2.0**-7
    gaps = round(update / gap)  # that one update moves the weight by
    end = 1 + gaps * gap * times
    exact = 1 + update * times
    if end >= 2 or abs(exact - end) <= WITHIN * end:
        return None  # the gap is larger from 2 on; or the exact sum would count as right
    return Asked(
        f"A weight in bf16 is 1. An update of {update:g} is added to it {times} times. What is the "
        "weight then, in bf16?",
        answer=end,
        derivation=f"The gap between 1 and 2 is 2^-7 = 0.0078125. Each sum is rounded to the "
        f"nearest neighbour, which is {gaps} {'gap' if gaps == 1 else 'gaps'} up: "
        f"1 + {times} × {gaps} / 128 = {number_text(end)}.",
        mistakes=(
            Mistake(exact, "That is the exact sum. bf16 rounds after each update."),
            Mistake(1, "An update of more than half a gap, 0.0039, does arrive."),
        ),
    )


def _scale(power: int) -> Asked:
    smallest = lossless_powers(-power, -power, "fp16")[0]
    scale = 2**smallest
    return Asked(
        f"The smallest gradients of a model are 2^-{power}. What is the least power of two as loss "
        "scale with which none of them becomes 0 in fp16? Answer with the scale, such as 2^5.",
        answer=scale,
        is_exact=True,
        derivation="fp16's smallest number is 2^-24. Half of it is rounded to 0, so a gradient has "
        f"to be brought to 2^-24: 2^({power} - 24) = 2^{smallest} = {scale:,}.",
        mistakes=(
            Mistake(
                scale / 2, "That brings it to 2^-25, half of the smallest number: rounded to 0."
            ),
            Mistake(
                scale * 2**10,
                "That brings it to 2^-14, the smallest normal number. Subnormal ones are no zeros.",
            ),
            Mistake(smallest, "That is the power. The scale is 2 to that power."),
        ),
    )


def _scaler(start: int, overflows: int, good: int, interval: int) -> Asked | None:
    doublings = good // interval
    if doublings == overflows:
        return None  # it would be what it was
    end = 2 ** (start - overflows + doublings)
    return Asked(
        f"A loss scale begins at 2^{start}. The first {overflows} steps overflow; the next "
        f"{good:,} are good. It doubles after {interval} good steps in a row. What is the scale "
        "then?",
        answer=end,
        is_exact=True,
        derivation=f"Each overflow halves it, and {good:,} good steps double it {doublings} "
        f"{'time' if doublings == 1 else 'times'}: 2^({start} - {overflows} + {doublings}) = "
        f"{end:,}.",
        mistakes=(
            Mistake(2 ** (start - overflows), "It also doubles, after enough good steps in a row."),
            Mistake(2 ** (start + doublings), "Each overflow halves it."),
            Mistake(
                start - overflows + doublings, "That is the power. The scale is 2 to that power."
            ),
        ),
    )


def _recipe(billions: int, name: str) -> Asked:
    parts = accountant.recipe(name)
    bytes_of = {
        part: sum(accountant.BYTES[dtype] for dtype in dtypes) for part, dtypes in parts.items()
    }
    each = sum(bytes_of.values())
    gigabytes = billions * each
    parts = ("parameters", "gradients", "master", "optimizer")  # as the question names them
    summands = " + ".join(str(bytes_of[part]) for part in parts if bytes_of[part])
    return Asked(
        f"{IN_WORDS[name]} How many GB is that for {billions} billion parameters?",
        answer=gigabytes,
        unit="GB",
        derivation=f"For each parameter {summands} = {each} bytes; times {billions} billion, that "
        f"is {in_words(gigabytes, 'GB')}.",
        mistakes=(
            Mistake(
                billions * (each - bytes_of["master"]),
                "4 bytes for each parameter are missing: a master copy takes 4, and so does each "
                "other number in fp32.",
            ),
            Mistake(
                billions * (each - bytes_of["gradients"]),
                "Each parameter has a gradient, too, and the optimizer keeps all of its numbers.",
            ),
            Mistake(
                billions * (each - bytes_of["optimizer"] / 2), "AdamW keeps two averages, not one."
            )
            if "adamw" in name
            else Mistake(billions * (each + 4), "Momentum keeps one number, not two."),
        ),
    )


def _to_e4m3(largest: float) -> Asked:
    top = floats.FORMATS["e4m3"].max
    scale = top / largest
    return Asked(
        f"The largest magnitude in a tensor is {largest:g}. By which scale is the tensor "
        "multiplied before it is stored in E4M3?",
        answer=scale,
        derivation="The scale brings the largest magnitude to E4M3's largest number, 448: "
        f"448 / {largest:g} = {number_text(scale)}.",
        mistakes=(
            Mistake(
                240 / largest,
                "240 is the largest number if a whole exponent field is kept for infinity and NaN. "
                "E4M3 keeps one pattern for NaN.",
            ),
            Mistake(57_344 / largest, "57,344 is the largest number of E5M2."),
            Mistake(largest / top, "That brings it back afterwards. The tensor is multiplied."),
            Mistake(1 / largest, "That brings it to 1, and leaves most of the range unused."),
        ),
    )


def _by_chance(weight: float, share: float) -> Asked:
    gap = floats.spacing(weight, "bf16")
    update = float(f"{share * gap:.2g}")
    percent = 100 * update / gap
    return Asked(
        f"A weight in bf16 is {weight:g}, where the gap is {number_text(gap)}. An update of "
        f"{update:g} is added with stochastic rounding. In how many percent of the cases does the "
        "weight change?",
        answer=percent,
        unit="percent",
        derivation="The sum is rounded up with a probability equal to its share of the gap: "
        f"{update:g} / {number_text(gap)} = {in_words(percent, 'percent')}.",
        mistakes=(
            Mistake(0, "Rounding to the nearest would lose it. By chance, it arrives at times."),
            Mistake(2 * percent, "It is a share of the whole gap, not of half of it."),
        ),
    )


QUESTIONS = (
    Question(
        "mixed_precision.arrive",
        "546d2866",
        _arrive,
        {"weight": (0.125, 0.25, 0.75, 1.5, 3.0, 5.0, 6.0, 10.0, 12.0), "first": range(8)},
    ),
    Question(
        "mixed_precision.stalls",
        "c98ac61d",
        _stalls,
        {"weight": (0.25, 0.375, 0.75, 2, 3, 5, 6, 10, 12, 20, 40, 96), "fmt": ("bf16", "fp16")},
    ),
    Question(
        "mixed_precision.drift",
        "546d2866",
        _drift,
        {
            "update": (0.0045, 0.005, 0.006, 0.0095, 0.01, 0.011, 0.013, 0.014, 0.018),
            "times": (16, 20, 24, 32, 40, 50, 64, 80, 100),
        },
    ),
    Question("mixed_precision.scale", "c2789dad9", _scale, {"power": range(27, 45)}),
    Question(
        "mixed_precision.scaler",
        "bcd4d86c",
        _scaler,
        {
            "start": (12, 14, 15, 16),
            "overflows": (2, 3, 4, 5),
            "good": (250, 450, 650, 1050),
            "interval": (100, 200),
        },
    ),
    Question(
        "mixed_precision.recipe",
        "c9bb127b1",
        _recipe,
        {"billions": (3, 7, 8, 13, 30, 70, 123, 405), "name": tuple(IN_WORDS)},
    ),
    Question(
        "mixed_precision.to_e4m3",
        "cde268f67",
        _to_e4m3,
        {"largest": (0.002, 0.05, 0.5, 2, 3.5, 7, 14, 28, 56, 64, 1000)},
    ),
    Question(
        "mixed_precision.by_chance",
        "c303a2779",
        _by_chance,
        {"weight": (0.5, 1, 2, 3, 6), "share": (0.1, 0.15, 0.2, 0.25, 0.3, 0.4)},
    ),
)
