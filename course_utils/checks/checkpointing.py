"""The exercises of notebook 08."""

import math

from course_utils import predict
from course_utils.checks.judging import Answers, function, value
from course_utils.checks.whole_file import write_whole  # noqa: F401  exercises, too
from course_utils.quantities import Number


@value(wanted="the bytes of all that cannot be made anew", tolerance=1e-6)
def checkpoint_bytes() -> Answers:
    """What a run of 8 billion parameters has to save, with a master copy."""
    parameters = 8_000_000_000
    right = predict.checkpoint_bytes(parameters)
    yield right, "4 for the master, 4 + 4 for the averages: 96 GB."
    anew = parameters * 16
    yield anew, "Gradients are made anew, and the bf16 parameters are the master's, rounded."
    yield parameters * 14, "The bf16 parameters can be had from the master."
    yield parameters * 8, "The master is needed too: the bf16 parameters have lost its digits."
    yield parameters * 10, "The bf16 parameters have lost the master's digits."
    yield parameters * 4, "AdamW's two averages are needed too."
    yield 12, "That is for each parameter; there are 8 billion."
    yield parameters * 2, "That is the model in bf16. A run needs its master and AdamW's averages."
    yield right / 1e9, "That is in GB. In bytes, please."


@function([(60, 1, 100), (60, 1024, 2000), (5, 16_384, 2000), (600, 8, 30.5)], tolerance=1e-6)
def interval(save_s: Number, machines: int, days_of_one: Number) -> Answers:
    """Young's interval for many machines, in seconds."""
    of_one = days_of_one * 86_400
    right, alone = predict.young_seconds(save_s, of_one / machines), predict.young_seconds(save_s, of_one)
    yield right, "Four runs, on 1 machine to 16,384. With twice the machines, save √2 times as often."
    yield alone, "With more machines, one of them fails sooner."
    yield alone * math.sqrt(machines), "With more machines, one of them fails sooner, not later."
    yield right / math.sqrt(2), "There is a 2 under the root: a failure loses half an interval."
    yield right / math.sqrt(86_400), "A day has 86,400 seconds."
    yield right / 60, "In seconds, please: that is in minutes, or has hours under the root."
    yield alone / machines, "Under the root, divide the time between failures by the machines."
    yield right**2, "Take the root."


# Recomputing.


@function([(2, 1), (2, 4), (1, 1), (1, 3), (6, 1), (6, 2), (3, 8)], tolerance=1e-9)
def flops_ratio(products: int, segment: int) -> Answers:
    """The FLOPs of a step with recomputing, over those without: (6 + 2 - 2 / (products × segment)) / 6."""
    right = (6 + 2 - 2 / (products * segment)) / 6
    yield right, "Seven stacks. Segments of one product cost nothing: the input is all that they keep."
    yield 8 / 6, "That is without early stop: the last product of each segment is not computed again."
    yield (8 - 2 / products) / 6, "Only the last block of a segment leaves a product out."
    yield (8 - 2 / (2 * segment)) / 6, "That holds for blocks of two products."
    yield (8 - 2 / segment) / 6, "The last block leaves out one product, not all."
    yield right - 1, "That is what comes on top; a step without recomputing counts as 1."
    one = (8 - 1 / (products * segment)) / 6
    yield one, "The forward pass is 2 of the 6, so a product of it is 2 / (products × segment)."


STACKS = [  # layers, and what a block's input and a block take
    (16, 1, 9), (22, 1, 1), (50, 3, 4), (100, 1, 1), (16, 1, 1),
    (7, 1, 1), (12, 2, 3), (1, 4, 36), (30, 5, 5),
]  # fmt: skip


@function(STACKS)
def best_segment(layers: int, input: int, block: int) -> Answers:
    """The smallest segment with the least peak, found by trying all."""

    def waiting(segment: int) -> list[int]:
        lengths = [min(segment, layers - begin) for begin in range(0, layers, segment)]
        return [number * input + length * block for number, length in enumerate(lengths)]

    def peak(segment: int) -> int:
        return max(waiting(segment))

    segments = range(1, layers + 1)
    right = min(segments, key=peak)
    yield right, "Nine stacks, whose blocks keep one to nine times their input."
    yield round(math.sqrt(layers)), "√L is for blocks that keep no more than their input."
    root = min(layers, max(1, round(math.sqrt(layers * input / block))))
    yield root, "The formula is least there, but the last segment may be shorter than it assumes: try all."
    yield 1, "That is right for blocks that keep much more than their input."
    whole = min(segments, key=lambda s: math.ceil(layers / s) * input + s * block)
    divisors = min((s for s in segments if layers % s == 0), key=peak)
    yield divisors, "A segment need not divide the number of layers: the last one may be shorter."
    yield whole, "⌈L / s⌉ takes the last segment for a whole one. If it is shorter, another has the peak."
    yield min(segments, key=lambda s: (peak(s), -s)), "Several have the least peak. Return the smallest."
    yield peak(right), "That is the lowest peak. Return the s that has it."
    total = min(segments, key=lambda s: sum(waiting(s)))
    yield total, "The peak is the largest of these sums, and not their total."
