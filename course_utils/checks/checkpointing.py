"""The exercises of notebook 08."""

import math

from course_utils import predict
from course_utils.checks.verdict import Verdict, judge_function, judge_value
from course_utils.checks.whole_file import write_whole
from course_utils.quantities import Number

__all__ = ["best_segment", "checkpoint_bytes", "flops_ratio", "interval", "write_whole"]


def checkpoint_bytes(answer: object) -> Verdict:
    """What a run of 8 billion parameters has to save, with a master copy."""
    parameters = 8_000_000_000
    expected = predict.checkpoint_bytes(parameters)
    return judge_value(
        answer,
        expected,
        wanted="the bytes of all that cannot be made anew",
        tempting={
            parameters * 16: "Gradients are made anew, and the bf16 parameters are the master's, rounded.",
            parameters * 14: "The bf16 parameters can be had from the master.",
            parameters * 8: "The master is needed too: the bf16 parameters have lost its digits.",
            parameters * 10: "The bf16 parameters have lost the master's digits.",
            parameters * 4: "AdamW's two averages are needed too.",
            12: "That is for each parameter; there are 8 billion.",
            parameters * 2: "That is the model in bf16. A run needs its master and AdamW's averages.",
            expected / 1e9: "That is in GB. In bytes, please.",
        },
        tolerance=1e-6,
        because="4 for the master, 4 + 4 for the averages: 96 GB.",
    )


def interval(answer: object) -> Verdict:
    """Young's interval for many machines, in seconds."""

    def oracle(save_s: Number, machines: int, days_of_one: Number) -> Number:
        return predict.young_seconds(save_s, days_of_one * 86_400 / machines)

    def as_for_one(save_s: Number, machines: int, days_of_one: Number) -> Number:
        return predict.young_seconds(save_s, days_of_one * 86_400)

    def safer_together(save_s: Number, machines: int, days_of_one: Number) -> Number:
        return predict.young_seconds(save_s, days_of_one * 86_400 * machines)

    def without_two(save_s: Number, machines: int, days_of_one: Number) -> Number:
        return oracle(save_s, machines, days_of_one) / math.sqrt(2)

    def in_days(save_s: Number, machines: int, days_of_one: Number) -> Number:
        return math.sqrt(2 * save_s * days_of_one / machines)

    def in_hours(save_s: Number, machines: int, days_of_one: Number) -> Number:
        return math.sqrt(2 * save_s * days_of_one * 24 / machines)

    def divided_later(save_s: Number, machines: int, days_of_one: Number) -> Number:
        return predict.young_seconds(save_s, days_of_one * 86_400) / machines

    def root_left_out(save_s: Number, machines: int, days_of_one: Number) -> Number:
        return oracle(save_s, machines, days_of_one) ** 2

    return judge_function(
        answer,
        oracle,
        [(60, 1, 100), (60, 1024, 2000), (5, 16_384, 2000), (600, 8, 30.5)],
        tolerance=1e-6,
        tempting={
            as_for_one: "With more machines, one of them fails sooner.",
            safer_together: "With more machines, one of them fails sooner, not later.",
            without_two: "There is a 2 under the root: a failure loses half an interval.",
            in_days: "A day has 86,400 seconds.",
            in_hours: "Those are hours under the root; a day has 86,400 seconds.",
            divided_later: "It is the time between failures that is shared out, under the root.",
            root_left_out: "Take the root.",
        },
        because="Four runs, on 1 machine to 16,384. Twice the machines want saves √2 times as often.",
    )


# Recomputing.


def flops_ratio(answer: object) -> Verdict:
    """(6 + 2 - 2 / (products × segment)) / 6."""

    def oracle(products: int, segment: int) -> Number:
        return (6 + 2 - 2 / (products * segment)) / 6

    def without_early_stop(products: int, segment: int) -> Number:
        return 8 / 6

    def every_block(products: int, segment: int) -> Number:
        return oracle(products, 1)

    def two_products(products: int, segment: int) -> Number:
        return oracle(2, segment)

    def whole_block(products: int, segment: int) -> Number:
        return (6 + 2 - 2 / segment) / 6

    def only_more(products: int, segment: int) -> Number:
        return oracle(products, segment) - 1

    def a_share_of_one(products: int, segment: int) -> Number:
        return (6 + 2 - 1 / (products * segment)) / 6

    return judge_function(
        answer,
        oracle,
        [(2, 1), (2, 4), (1, 1), (1, 3), (6, 1), (6, 2), (3, 8)],
        tolerance=1e-9,
        tempting={
            without_early_stop: "That is without early stop: the last product of each segment is not computed again.",
            every_block: "Only the last block of a segment leaves a product out.",
            two_products: "That holds for blocks of two products.",
            whole_block: "Of the last block one product is left out, not all.",
            only_more: "That is what comes on top; a step without recomputing counts as 1.",
            a_share_of_one: "The forward pass is 2 of the 6, so a product of it is 2 / (products × segment).",
        },
        because="Seven stacks. One product a block in segments of one costs nothing: the input is all that it keeps.",
    )


def best_segment(answer: object) -> Verdict:
    """The segment with the least peak, all tried; of equals the shortest."""

    def peak(layers: int, input: int, block: int, segment: int) -> int:
        lengths = [min(segment, layers - begin) for begin in range(0, layers, segment)]
        return max(number * input + length * block for number, length in enumerate(lengths))

    def oracle(layers: int, input: int, block: int) -> int:
        return min(range(1, layers + 1), key=lambda segment: peak(layers, input, block, segment))

    def root_of_layers(layers: int, input: int, block: int) -> int:
        return round(math.sqrt(layers))

    def root(layers: int, input: int, block: int) -> int:
        return min(layers, max(1, round(math.sqrt(layers * input / block))))

    def always_one(layers: int, input: int, block: int) -> int:
        return 1

    def whole_segments(layers: int, input: int, block: int) -> int:
        return min(range(1, layers + 1), key=lambda s: math.ceil(layers / s) * input + s * block)

    def longest(layers: int, input: int, block: int) -> int:
        return min(range(1, layers + 1), key=lambda s: (peak(layers, input, block, s), -s))

    return judge_function(
        answer,
        oracle,
        [(16, 1, 9), (50, 3, 4), (100, 1, 1), (16, 1, 1), (7, 1, 1), (12, 2, 3), (1, 4, 36), (30, 5, 5)],
        tempting={
            root_of_layers: "√L is for blocks that keep no more than their input.",
            root: "There the formula is least; but no segment is a part of one: the last is shorter. Count, and try all.",
            always_one: "That is right for blocks that keep much more than their input.",
            whole_segments: "With ⌈L / s⌉ the last segment counts as a whole one; it may be shorter, and another one the largest.",
            longest: "Of equals the shortest is asked for.",
        },
        because="Eight stacks, of blocks that keep their input alone to nine times as much.",
    )
