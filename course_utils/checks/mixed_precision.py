"""The exercises of notebook 07."""

import math

import torch

from course_utils import floats
from course_utils.checks.sentences import IN_PLACE, NO_NUMBER, advice_on_kind, name_of, shown, stopped
from course_utils.checks.verdict import NOT_ATTEMPTED, Verdict, call, judge_function, judge_value, no_function
from course_utils.quantities import Number

State = tuple[Number, int]  # of a loss scaler: its scale, and the good steps since it changed


def moves(answer: object) -> Verdict:
    """Whether weight + update, rounded to bf16, is another number."""

    def oracle(weight: Number, update: Number) -> bool:
        return floats.stored(weight + update, "bf16") != weight

    def against_epsilon(weight: Number, update: Number) -> bool:
        return update > 2**-8

    def relative(weight: Number, update: Number) -> bool:
        return update > 2**-8 * weight

    def in_python(weight: Number, update: Number) -> bool:
        return weight + update != weight

    def quarter_step(weight: Number, update: Number) -> bool:
        return update > floats.spacing(weight, "bf16") / 4

    def whole_step(weight: Number, update: Number) -> bool:
        return update >= floats.spacing(weight, "bf16")

    def tie_stays(weight: Number, update: Number) -> bool:
        return update > floats.spacing(weight, "bf16") / 2

    def tie_moves(weight: Number, update: Number) -> bool:
        return update >= floats.spacing(weight, "bf16") / 2

    cases = [
        (1.0, 0.001),
        (1.0, 0.01),
        (1.0, 0.005),
        (1.0, 0.003),
        (0.01904296875, 0.0001),  # bf16 numbers, all of them
        (1.9921875, 0.0045),
        (96.0, 0.3),
        (2.0**-20, 2.0**-27),
        (1.0, 2.0**-8),
        (1.0078125, 2.0**-8),
        (3.0, 2.0**-7),
    ]
    return judge_function(
        answer,
        oracle,
        cases,
        tempting={
            against_epsilon: "Steps grow with the weight: 2^-8 is half a step from 1 to 2 alone.",
            relative: "Between two powers of two the step stays the same: it does not grow with the weight itself.",
            in_python: "Python adds in fp64. What counts is the sum, rounded to bf16.",
            quarter_step: "bf16 has 7 fraction bits: from 1 on a step is 2^-7, and half of it 2^-8.",
            whole_step: "Half a step is enough: it is nearer to the next number.",
            tie_stays: "Half a step exactly goes to the neighbour whose fraction ends in 0, which may be the next one.",
            tie_moves: "Half a step exactly goes to the neighbour whose fraction ends in 0, which may be the weight itself.",
        },
        because="Eleven weights from 2^-20 to 96, three of them with exactly half a step.",
    )


def loss_scale(answer: object) -> Verdict:
    """The largest power of two at which the largest gradient stays finite in fp16."""

    def oracle(largest: Number) -> Number:
        scale = 2.0 ** math.floor(math.log2(2**16 / largest) + 1)
        while floats.overflows(scale * largest, "fp16"):
            scale /= 2
        return scale

    def any_number(largest: Number) -> Number:
        return 65_504 / largest

    def too_large(largest: Number) -> Number:
        return 2 * oracle(largest)

    def up_to_the_edge(largest: Number) -> Number:
        return 2.0 ** math.floor(math.log2(65_520 / largest))

    def by_the_power(largest: Number) -> Number:
        return 2.0 ** (15 - math.floor(math.log2(largest)))

    def below_the_largest(largest: Number) -> Number:
        scale = oracle(largest)
        return scale if scale * largest <= 65_504 else scale / 2

    def constant(largest: Number) -> Number:
        return 2.0**15

    return judge_function(
        answer,
        oracle,
        [
            (1.0,),
            (3e-5,),
            (300.0,),
            (65_504.0,),
            (1e6,),
            (1.9998,),
            (1.99951171875,),
            (65_519.0,),
            (65_520.0,),
        ],
        tempting={
            any_number: "A power of two is asked for: it changes no digit.",
            up_to_the_edge: "65,520 itself is infinite already: the product has to stay below it.",
            by_the_power: "Numbers just below a power of two need one factor less: 1.9998 × 2^15 is infinite.",
            below_the_largest: "Up to 65,520 fp16 rounds down to 65,504: that is still finite.",
            constant: "That is for a largest gradient near 1: smaller ones can be scaled up further.",
            too_large: "With that scale the largest gradient becomes infinite.",
        },
        because="Nine gradients, two of them at the very edge.",
    )


def recipe_bytes(answer: object) -> Verdict:
    """Master and gradients in fp32, two averages in bf16, an fp8 copy for the products."""
    return judge_value(
        answer,
        4 + 4 + 2 + 2 + 1,
        wanted="the bytes of all that is kept for one parameter",
        tempting={
            12: "The fp8 copy takes a byte as well.",
            17: "The averages are bf16 here, 2 bytes each.",
            11: "There are two averages, and the gradients are in fp32.",
            8 * 13: "That is in bits, 8 a byte.",
            9: "The gradients are kept as well.",
            14: "The copy for the products is fp8: one byte, not two.",
            16: "That is the usual recipe. Add up what this one keeps.",
        },
        because="4 for the master, 4 for the gradient, 2 + 2 for the averages, 1 for the copy.",
    )


def updated_scale(answer: object) -> Verdict:
    """(scale, good steps) after a step, as torch's GradScaler has them."""

    def oracle(scale: Number, good_steps: int, finite: bool, interval: int) -> State:
        if not finite:
            return scale / 2, 0
        return (scale * 2, 0) if good_steps + 1 == interval else (scale, good_steps + 1)

    def one_too_late(scale: Number, good_steps: int, finite: bool, interval: int) -> State:
        if not finite:
            return scale / 2, 0
        return (scale * 2, 0) if good_steps == interval else (scale, good_steps + 1)

    def goes_on_counting(scale: Number, good_steps: int, finite: bool, interval: int) -> State:
        new, good = oracle(scale, good_steps, finite, interval)
        return (new, good_steps + 1) if finite else (new, good)

    def counts_from_one(scale: Number, good_steps: int, finite: bool, interval: int) -> State:
        new, good = oracle(scale, good_steps, finite, interval)
        return (new, 1) if new > scale else (new, good)

    def other_order(scale: Number, good_steps: int, finite: bool, interval: int) -> tuple[int, Number]:
        return oracle(scale, good_steps, finite, interval)[::-1]

    def keeps_the_count(scale: Number, good_steps: int, finite: bool, interval: int) -> State:
        return oracle(scale, good_steps, finite, interval) if finite else (scale / 2, good_steps)

    def never_grows(scale: Number, good_steps: int, finite: bool, interval: int) -> State:
        return (scale, good_steps + 1) if finite else (scale / 2, 0)

    def grows_each_time(scale: Number, good_steps: int, finite: bool, interval: int) -> State:
        return (2 * scale, 0) if finite else (scale / 2, 0)

    def never_shrinks(scale: Number, good_steps: int, finite: bool, interval: int) -> State:
        return oracle(scale, good_steps, finite, interval) if finite else (scale, 0)

    return judge_function(
        answer,
        oracle,
        [
            (65_536.0, 0, True, 2000),
            (65_536.0, 7, False, 2000),
            (1024.0, 4, True, 5),
            (1024.0, 3, True, 5),
            (1024.0, 4, False, 5),
            (1.0, 0, False, 2000),
            (8.0, 0, True, 1),
        ],
        tempting={
            one_too_late: "The present step counts: after the fifth good step of five the scale doubles.",
            goes_on_counting: "After a doubling the count begins again at 0.",
            counts_from_one: "After a doubling the count begins again at 0.",
            other_order: "The scale comes first.",
            keeps_the_count: "After an infinity the count begins again at 0: the good steps have to follow each other.",
            never_grows: "After `interval` good steps the scale doubles.",
            grows_each_time: "One good step is not enough: it takes `interval` of them, one after the other.",
            never_shrinks: "An infinity halves the scale.",
        },
        because="Seven steps: good ones, infinite ones, and a doubling after five and after each.",
    )


# Rounding by chance has many right answers, so it is judged by what holds for all of them.

DRAWS = 20_000


def rounded_by_chance(answer: object) -> Verdict:
    """Each number goes to one of its two bf16 neighbours, to the upper one with a chance of the way it has come."""
    if not callable(answer):
        return no_function(answer)
    for number in (1.001, 1.25, -1.001, 3.14159, 0.0123, -1e-20, 255.5):
        x = torch.full((DRAWS,), number)
        given = x.clone()
        came, error = call(answer, given, torch.Generator().manual_seed(1))
        called = f"{name_of(answer)} of {DRAWS:,} times {number:g}"
        if error:
            return Verdict("not yet", f"{called} {stopped(answer, error)}")
        if came is ...:
            return NOT_ATTEMPTED
        if not torch.equal(given, x):
            return Verdict("not yet", f"{called} {IN_PLACE}")
        wrong = _wrongly_rounded(came, x)
        if wrong:
            return Verdict("not yet", f"{called}: {wrong}")
    drawn = []
    for seed in (2, 2, 3):
        x = torch.full((DRAWS,), 1.001)
        came, error = call(answer, x.clone(), torch.Generator().manual_seed(seed))
        wrong = stopped(answer, error) if error else _wrongly_rounded(came, x)
        if wrong:
            return Verdict("not yet", f"{name_of(answer)} with another generator: {wrong}")
        drawn.append(came)
    if not torch.equal(drawn[0], drawn[1]) or torch.equal(drawn[0], drawn[2]):
        return Verdict("not yet", "Draw from the generator that is given, and from no other.")
    return Verdict("right", f"Seven numbers, {DRAWS:,} times each: two neighbours, and the right average.")


def _wrongly_rounded(came: object, x: torch.Tensor) -> str:
    if not isinstance(came, torch.Tensor) or came.dtype != torch.bfloat16 or came.shape != x.shape:
        kind = f"{came.dtype}, shape {tuple(came.shape)}" if isinstance(came, torch.Tensor) else shown(came)
        wider = isinstance(came, torch.Tensor) and came.numel() > x.numel()
        advice = "An int32 and an int64 make an int64." if wider else advice_on_kind(came, x)
        return f"a tensor in bf16 is wanted, of shape {tuple(x.shape)}; it gave {kind}. {advice}".strip()
    if came.isnan().any():
        return f"NaN is among the results. {NO_NUMBER}"
    exact = x[0].double().item()
    lower, upper = floats.neighbours(exact, "bf16")
    nearest = floats.stored(exact, "bf16")
    values = sorted(set(came.double().tolist()))
    if nearest == exact:
        return "" if values == [exact] else f"it is a bf16 number already, and became {values[0]:g}."
    lower, upper = (nearest, upper) if nearest < exact else (lower, nearest)
    strange = [value for value in values if value not in (lower, upper)]
    if strange:
        return f"{strange[0]:g} is none of its two neighbours, {lower:g} and {upper:g}."
    if len(values) == 1:
        return f"all became {values[0]:g}, as rounding to the nearest would have it. Now and then it should be the other neighbour."
    chance = (exact - lower) / (upper - lower)
    share = (came.double() == upper).double().mean().item()
    error = math.sqrt(chance * (1 - chance) / len(x))
    if abs(share - chance) > 5 * error:
        return f"{share:.1%} went up to {upper:g}; {exact:g} has come {chance:.1%} of the way from {lower:g}."
    return ""
