"""The exercises of notebook 08 on what GPUs send each other; `check` imports them by name.

Each yields the right answer with the sentence on it, and then the answers of likely mistakes, each
with the advice on the mistake.
"""

from course_utils.engine.judging import Answers, function

RUNS = [  # parameters, bytes of a weight and of a gradient, GPUs, ZeRO's stage
    (24, 1, 4, 8, 3),
    (24, 2, 4, 8, 1),
    (24, 2, 4, 8, 0),
    (24, 2, 4, 8, 2),
    (4096, 2, 2, 64, 3),
    (1000, 4, 4, 1, 3),
    (8_030_261_248, 2, 2, 8, 0),
]


@function(
    RUNS,
    unit="bytes",
    hints=(
        "passed = numbers * (gpus - 1) // gpus is how many numbers each GPU sends in one "
        "reduce-scatter, or in one all-gather.",
        "There is one reduce-scatter of gradients at every stage. After it come one all-gather of "
        "gradients (stage 0), one of weights (1 and 2), or none (3).",
        "At stage 3, two all-gathers of weights come before it.",
    ),
)
def data_parallel_bytes(
    numbers: int, weight_bytes: int, gradient_bytes: int, gpus: int, stage: int
) -> Answers:
    """The check of a reader's data_parallel_bytes(…): the bytes that each GPU sends in a step."""
    passed = _passed(numbers, gpus)
    scatter = passed * gradient_bytes
    gather = passed * weight_bytes
    all_reduce = 2 * scatter
    right = {0: all_reduce, 1: scatter + gather, 2: scatter + gather, 3: scatter + 2 * gather}
    yield right[stage], "One reduce-scatter and one all-gather, or at stage 3 two all-gathers."
    of_whole = {0: 2 * gradient_bytes, 3: gradient_bytes + 2 * weight_bytes}
    usual = gradient_bytes + weight_bytes
    yield (
        numbers * of_whole.get(stage, usual),
        "A GPU need not send its own last piece: (gpus - 1) / gpus of the numbers.",
    )
    yield gpus * right[stage], "That is what all GPUs send together. Return the bytes of one."
    yield (
        numbers * (gpus - 1) * gradient_bytes,
        "That is one GPU that sends all numbers to each other one. In a ring, it sends pieces.",
    )
    yield (
        right[stage] if stage == 0 else scatter + gather,
        "At stage 3 the weights are gathered twice: for the forward and for the backward pass.",
    )
    three = right | {3: scatter + 3 * gather}
    yield three[stage], "At stage 3 nothing is gathered after the update: the next step does that."
    yield scatter, "After the reduce-scatter, a GPU has the sum of one piece. What is missing?"
    yield (
        all_reduce,
        "From stage 1 on, no GPU needs the sums of all gradients, but each needs all the weights.",
    )
    of_weights = right | {0: scatter + gather}
    yield of_weights[stage], "At stage 0 the sums of the gradients are gathered, and no weights."
    narrow = {0: 2 * gather, 3: 3 * gather}
    yield narrow.get(stage, 2 * gather), "A gradient takes gradient_bytes, and not weight_bytes."
    wide = {0: all_reduce, 3: 3 * scatter}
    yield wide.get(stage, all_reduce), "A weight takes weight_bytes, and not gradient_bytes."
    yield passed * 2, "Those are numbers. Return bytes."


def _passed(numbers: int, gpus: int) -> int:
    """Return how many numbers each GPU passes on, round by round, until all have been everywhere.

    >>> _passed(24, 8)
    21
    """
    piece = numbers // gpus
    passed = 0
    for _round in range(gpus - 1):
        passed += piece
    return passed


SEQUENCES = [  # layers, tokens of a sequence, numbers of a key, bytes of a number, GPUs
    (5, 32, 8, 4, 8),
    (4, 32, 32, 4, 4),
    (126, 131_072, 1024, 2, 16),
    (1, 6, 1, 4, 3),
    (7, 48, 16, 2, 1),
]


@function(
    SEQUENCES,
    unit="bytes",
    hints=(
        "A token has 2 * key_numbers numbers in each layer, in its key and in its value.",
        "An all-gather or a reduce-scatter sends (gpus - 1) / gpus of all tokens' numbers.",
        "There are two all-gathers and one reduce-scatter in each layer.",
    ),
)
def context_parallel_bytes(
    layers: int, tokens: int, key_numbers: int, number_bytes: int, gpus: int
) -> Answers:
    """The check of a reader's context_parallel_bytes(…): bytes that each GPU sends in a step."""
    once = layers * 2 * number_bytes * _passed(tokens * key_numbers, gpus)
    yield 3 * once, "Two all-gathers of keys and values, and one reduce-scatter of their gradients."
    yield once, "That is the forward pass alone. The backward pass gathers, and adds up gradients."
    yield (
        2 * once,
        "Three times in a step, something is sent. Two of them are in the backward pass.",
    )
    yield 4 * once, "After the reduce-scatter, nobody needs the gradients of others' tokens."
    yield 3 * once // 2, "A token has a key and a value, of key_numbers numbers each."
    whole = layers * 2 * number_bytes * tokens * key_numbers
    yield (
        3 * whole,
        "One part of the tokens is a GPU's own: (gpus - 1) / gpus of them are passed on.",
    )
    yield 3 * once * gpus, "That is what all GPUs send together. Return the bytes of one."
    yield 3 * once // layers, "That is one layer of all."
    yield 3 * once // number_bytes, "Those are numbers. Return bytes."
