"""Exercises in *Beyond* of notebook 06; `check` imports them by name, and has the others.

An exercise takes the arguments of a case. It yields the right answer with the sentence on it, and
then the answers of likely mistakes, each with the advice on the mistake.
"""

import math

from course_utils.core.say import Number
from course_utils.engine.judging import Answers, function, outcome


@function(
    [(256, 0.9), (256, 1.0), (256, 0.5), (1024, 0.5), (100, 0.1)],
    tolerance=1e-6,
    hints=(
        "A layer's output is a sum over its inputs, so its mean square is inputs * variance times "
        "that of an input.",
        "The nonlinearity leaves kept_share of it, so inputs * variance * kept_share has to be 1.",
    ),
)
def initial_std(inputs: int, kept_share: Number) -> Answers:
    """The check of a reader's initial_std(inputs, kept_share): the scale that keeps E[x²]."""
    variance = 1 / (inputs * kept_share)
    right = math.sqrt(variance)
    yield right, "Five cases. With a share of 1 it is LeCun's, with one half Kaiming's."
    without_share = math.sqrt(1 / inputs)
    yield without_share, "That keeps the scale only if nothing is zeroed. Use the kept share, too."
    yield variance, "That is the variance. Return its root, the standard deviation."
    outside = without_share / kept_share
    yield outside, "The share belongs under the root, too: it divides the variance."
    # With a kept_share of 1, this mistake divides by 0. Then `outcome` returns the error.
    of_lost = outcome(lambda: math.sqrt(1 / (inputs * (1 - kept_share))))
    yield (
        of_lost,
        "kept_share is what is left already, and not what is lost: do not take it from 1.",
    )
    smaller = math.sqrt(kept_share / inputs)
    yield smaller, "What is zeroed is lost, so the rest has to be larger, not smaller."
    for_relu = math.sqrt(2 / inputs)
    yield for_relu, "That is for a share of one half, as with ReLU."


FILES = [  # tokens, and the length of a window
    ([31, 11, 42, 15, 96, 27], 2),
    ([31, 11, 42, 15, 96, 27], 5),
    ([72, 83], 1),
    (list(range(10, 19)), 4),
]


@function(
    FILES,
    hints=(
        "A window that begins at `start` is tokens[start : start + sequence].",
        "Its targets begin and end one token later, so `start` has to leave room for one token "
        "more.",
        "So `start` runs through range(len(tokens) - sequence).",
    ),
)
def token_windows(tokens: list[int], sequence: int) -> Answers:
    """The check of a reader's my_windows(tokens, sequence): all pairs (window, targets)."""
    pairs = []
    for start in range(len(tokens) - sequence + 1):
        end = start + sequence
        pairs.append((tokens[start:end], tokens[start + 1 : end + 1]))
    right = pairs[:-1]  # the very last window has no last target
    yield right, "Four files of tokens, the shortest possible among them."
    yield right[:-1], "One is missing: the last window is the one whose targets end the file."
    yield pairs, "The last of those lacks a target: the file ends with its window."
    yield [(window, window) for window, _ in right], "The targets begin one token later."
    a_target_each = [(window, targets[-1]) for window, targets in right]
    yield a_target_each, "Each token of the window has a target: as many as the window has tokens."
    yield right[::sequence], "Windows overlap: one begins at each token that leaves room."
    yield [(targets, window) for window, targets in right], "The order is (window, targets)."
    whole = [[*window, targets[-1]] for window, targets in right]
    yield whole, "Cut each of those in two: all but its last token, and all but its first."
    # Beyond the last token a slice is short, or empty.
    following = []
    for start, (window, _) in enumerate(right):
        end = start + sequence
        following.append((window, tokens[end : end + sequence]))
    yield following, "Targets begin one token later than the window, and not after it."
    windows = [window for window, _ in right]
    targets = [targets for _, targets in right]
    yield (windows, targets), "Return one list of pairs, and not two lists."


Gradients = list[list[Number]]  # of each parameter a list
TO_CLIP = [([[3.0, 4.0]], 1.0), ([[3.0], [0.0, 4.0]], 1.0), ([[30.0], [40.0], [0.0]], 10.0)]
LEFT_AS_THEY_ARE = [([[0.3], [0.4]], 1.0), ([[0.0, 0.0]], 1.0)]


def _norm(gradients: Gradients) -> Number:
    """Return the root of the sum of all squares: math.hypot takes any number of sides."""
    return math.hypot(*[math.hypot(*gradient) for gradient in gradients])


# The tolerance is for those who add 1e-6 to the norm, as torch does, so as not to divide by 0.
@function(
    [*TO_CLIP, *LEFT_AS_THEY_ARE],
    tolerance=1e-5,
    hints=(
        "The norm is the root of the sum of all squares, over all lists together.",
        "If it is larger than max_norm, multiply every number by max_norm / norm.",
        "min(1, max_norm / norm) leaves small gradients as they are. Mind a norm of 0.",
    ),
)
def clipped(gradients: Gradients, max_norm: Number) -> Answers:
    """The check of a reader's my_clipped(gradients, max_norm): their norm is at most max_norm."""
    norm = _norm(gradients)
    numbers = [x for gradient in gradients for x in gradient]

    # Below, gradients of some size are scaled by max_norm / max(max_norm, size). That is 1 if the
    # size is at most max_norm.
    def times(scale: Number) -> Gradients:
        """Return all gradients, multiplied by the scale."""
        return [[scale * x for x in gradient] for gradient in gradients]

    right = times(max_norm / norm) if norm > max_norm else times(1)
    yield right, "Lists of one, two and three parameters, a norm below the limit, and one of 0."
    each_alone = []
    by_value = []
    for gradient in gradients:
        scale = max_norm / max(max_norm, _norm([gradient]))
        each_alone.append([scale * x for x in gradient])
        by_value.append([max(-max_norm, min(max_norm, x)) for x in gradient])
    yield each_alone, "Take one norm over all parameters together, so that the direction stays."
    yield by_value, "That clips each number alone, which changes the direction."
    # If the norm is 0, this mistake and the next one divide by 0, and `outcome` returns the error.
    without_zero = outcome(lambda: times(min(1, max_norm / norm)))
    yield without_zero, "Gradients that are all 0 have a norm of 0: leave them as they are."
    always = outcome(lambda: times(max_norm / norm))
    yield always, "Gradients with a smaller norm stay as they are."
    sum_of_sizes = sum(abs(x) for x in numbers)
    by_sizes = times(max_norm / max(max_norm, sum_of_sizes))
    yield by_sizes, "The norm is the root of the sum of squares, not the sum of magnitudes."
    squared = times(max_norm / max(max_norm, norm**2))
    yield squared, "That is the square of the norm: take its root."
    of_largest = times(max_norm / max(max_norm, *map(abs, numbers)))
    yield of_largest, "The norm is over all numbers, and not the largest of them."
    of_mean_square = times(max_norm / max(max_norm, norm / math.sqrt(len(numbers))))
    yield of_mean_square, "The norm has the sum of the squares under its root, and not their mean."
    to_1 = times(1 / max(1, norm))
    yield to_1, "max_norm is not always 1."
    yield norm, "That is the norm. Return the gradients."


def _share(done: Number) -> Number:
    """Return the factor of the peak rate when the part `done` of the fall is over.

    It falls along half a cosine, from 1 at done = 0 to 0 at done = 1: (1 + cos(π · done)) / 2. It
    is computed as cos²(π · done / 2), so that a reader's formula is compared with another one.
    """
    return math.cos(math.pi / 2 * done) ** 2


STEPS_OF_RUNS = [  # step, peak, warmup, total
    (1, 1.0, 3, 12),
    (5, 1.0, 3, 12),
    (10, 1.0, 3, 12),
    (0, 3e-4, 20, 100),
    (19, 3e-4, 20, 100),
    (20, 3e-4, 20, 100),
    (60, 3e-4, 20, 100),
    (97, 3e-4, 20, 100),
]


# It yields the right answer first, and then likely mistakes, each with the sentence on it.
@function(
    STEPS_OF_RUNS,
    tolerance=1e-6,
    hints=(
        "Before step `warmup`, the rate is peak * (step + 1) / warmup.",
        "From then on, done = (step - warmup) / (total - warmup) goes from 0 to 1.",
        "math.cos(math.pi * done) goes from 1 to -1. Add 1 and take half, and it goes from 1 to 0.",
    ),
)
def rate_of_step(step: int, peak: Number, warmup: int, total: int) -> Answers:
    """The check of a reader's my_rate(step, peak, warmup, total): the learning rate of a step."""
    if step >= total:  # as in a random case, which is then drawn again
        raise ValueError("The run has ended before this step.")
    rising = peak * (step + 1) / warmup
    done = (step - warmup) / (total - warmup)

    def with_warmup(falling: Number) -> Number:  # `falling` is the later steps' rate
        return rising if step < warmup else falling

    right = with_warmup(peak * _share(done))
    yield right, "Eight steps of two runs, the last of a warm-up and the first after it among them."
    from_zero = peak * step / warmup if step < warmup else right
    yield from_zero, "Step 0 would do nothing: begin with peak / warmup, for (step + 1) / warmup."
    without_rise = peak * _share(step / total)
    yield without_rise, "The warm-up is missing: before step `warmup` the rate rises."
    still_rising = rising if step <= warmup else right
    yield still_rising, "The fall begins at step `warmup`: up to warmup - 1 the rate rises."
    from_the_start = with_warmup(peak * _share(step / total))
    yield from_the_start, "The fall begins at step `warmup`, so begin to count its steps there."
    too_long = with_warmup(peak * _share((step - warmup) / total))
    yield too_long, "The fall takes total - warmup steps, and not total."
    one_short = outcome(lambda: with_warmup(peak * _share((step - warmup) / (total - warmup - 1))))
    yield one_short, "The rate would be 0 at step `total`, and not in the last step before it."
    one_late = with_warmup(peak * _share((step + 1 - warmup) / (total - warmup)))
    yield one_late, "Step `warmup` has the peak: the fall counts from 0, and the rise from 1."
    cosine = math.cos(math.pi * done)
    yield with_warmup(peak * (1 + cosine)), "1 + cos goes from 2 to 0: take half of it."
    yield with_warmup(peak * cosine), "The cosine goes from 1 to -1, and the rate from peak to 0."
    quarter = with_warmup(peak * math.cos(math.pi / 2 * done))
    yield quarter, "That is a quarter of a cosine. In half of one, the angle goes from 0 to π."
    whole = with_warmup(peak * _share(2 * done))
    yield whole, "That is a whole cosine, which rises again. In half of one, the angle ends at π."
    yield with_warmup(peak * (1 - done)), "That falls in a straight line. A cosine is wanted."
    yield with_warmup(peak - peak * _share(done)), "That rises again from 0: the cosine of 0 is 1."
    without_pi = with_warmup(peak * _share(done / math.pi))
    yield without_pi, "The angle goes from 0 to π: multiply the share that is done by math.pi."
    in_degrees = with_warmup(peak * (1 + math.cos(180 * done)) / 2)
    yield in_degrees, "math.cos takes an angle in radians: write math.pi, and not 180."
    yield right / peak, "That is the share of the peak: multiply it by peak."


@function(
    [(4096, 14_336, 8, 2), (2048, 768, 128, 8), (24, 10, 6, 3)],
    gives=("stored", "active"),
    hints=(
        "An expert has three matrices: 3 · width · inner weights.",
        "All experts are stored. The router is stored, and each token goes through it.",
    ),
)
def mixture_weights(width: int, inner: int, experts: int, used: int) -> Answers:
    """The check of a reader's mixture_weights(…): what a mixture stores, and what a token uses."""
    router = width * experts  # a column for each expert
    of_expert = 2 * width * inner + inner * width  # gate and up, then down
    # Expert by expert, and not by the formula that a reader writes.
    stored = router + sum(of_expert for _ in range(experts))
    active = router + sum(of_expert for _ in range(used))
    yield (stored, active), "Three mixtures, expert by expert: Mixtral's, Qwen3's and a small one."
    no_router = "The router has weights, too: width · experts. Each token goes through all of them."
    yield (stored - router, active - router), no_router
    yield (stored, active - router), no_router
    yield (stored - router, active), no_router
    part_of_router = active - router + width * used
    yield (
        (stored, part_of_router),
        "A token goes through the whole router: it needs a score for each expert.",
    )
    yield (active, stored), "In this order: what is stored, and then what a token uses."
    without_gate = 2 * width * inner
    yield (
        (experts * without_gate + router, used * without_gate + router),
        "The experts are gated: three matrices each, and not two.",
    )
    yield (
        (stored, stored),
        "A token does not go through all experts: only through `used` of them.",
    )


@function(
    [(768, 3072, 5), (768, 768, 5), (4096, 1024, 5), (6, 10, 2), (7, 3, 1)],
    hints=(
        "X is short × long: a matrix with more rows than columns is transposed first.",
        "An m × k matrix times a k × n matrix takes 2 · m · k · n FLOPs.",
        "X Xᵀ takes 2 · short² · long. So does the last product. A A takes 2 · short³.",
    ),
)
def newton_schulz_flops(rows: int, columns: int, steps: int) -> Answers:
    """The check of a reader's newton_schulz_flops(…): all products of Muon's iteration."""
    short = min(rows, columns)
    long = max(rows, columns)

    def of_products(*products: tuple[int, int, int]) -> int:
        """Return the FLOPs of those products in all steps."""
        return steps * sum(2 * m * k * n for m, k, n in products)

    gram = (short, long, short)
    square = (short, short, short)
    with_x = (short, short, long)
    right = of_products(gram, square, with_x)
    yield right, "Five matrices, product by product: wide, square and tall."
    tall = of_products((rows, columns, rows), (rows, rows, rows), (rows, rows, columns))
    yield tall, "A tall matrix is transposed first, so A is as small as it can be: short × short."
    wide = of_products((columns, rows, columns), (columns,) * 3, (columns, columns, rows))
    yield wide, "X Xᵀ has as many rows as X, and X has the shorter side as its rows."
    yield right // 2, "A multiply-add is 2 FLOPs."
    yield right // steps, "That is one step. There are `steps` of them."
    yield of_products(gram, with_x), "A is multiplied by itself, too: 2 · short³."
    yield (
        of_products(gram, square),
        "Two products have X in them: X Xᵀ, and the bracket times X. Count both.",
    )
    yield of_products(gram, square, square, with_x), "A A is computed once, and not twice."
    yield (
        of_products(gram, square, with_x, with_x),
        "X is multiplied once by the sum b A + c A A, and not once by each.",
    )
