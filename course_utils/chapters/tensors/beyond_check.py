"""Exercises in *Beyond* of notebook 02; `check` imports them by name, and has the others.

For one case, an exercise yields the right answer first, and then what tempting mistakes lead to.
Each has a sentence: why it is right, or the advice on the mistake.
"""

import math

import torch

from course_utils.engine.judging import Answers, function

LINE_BYTES = 64  # of a cache line


# A dimension's stride and its tensor's offset; then start, stop and step of the slice.
@function(
    [(1, 0, 1, 6, 2), (6, 8, 4, 10, 3), (5, 7, 0, 9, 1), (20, 3, 2, 8, 3), (4, 60, 3, 20, 8)],
    gives=("size", "stride", "offset"),
    hints=(
        "The first index is start, which is start old steps away from the old beginning.",
        "From there, each new step goes step old ones. Count the indices start, start + step, and "
        "so on, that are below stop: Python's range does so, too.",
    ),
)
def cut(stride: int, offset: int, start: int, stop: int, step: int) -> Answers:
    """The check of a reader's cut(…): size, stride and offset of [start:stop:step]."""
    size = len(range(start, stop, step))
    new_stride = step * stride
    begin = offset + start * stride
    yield (size, new_stride, begin), "Five slices, as torch makes them, some of a slice."
    passed = stop - start  # the indices from start to stop, taken or not
    yield (passed, new_stride, begin), "That counts every index. Only each step-th one is taken."
    round_up = "The first index counts, too: round up, as in -(-(stop - start) // step)."
    yield (passed // step, new_stride, begin), round_up
    yield (
        (passed // step + 1, new_stride, begin),
        "If step divides stop - start, that is one too many, because stop itself is left out.",
    )
    yield (
        (size, new_stride, offset + start),
        "The offset counts positions of the storage. An index takes stride of them.",
    )
    yield (size, new_stride, offset), "The first element is another one: start moves the offset."
    yield (size, new_stride, start * stride), "The tensor has an offset already. Add to it."
    too_late = offset + start * new_stride
    yield (size, new_stride, too_late), "Up to start, the steps are the old ones: start * stride."
    yield (size, stride, begin), "Between two taken indices there are step old steps."
    yield (size, step, begin), "A new step is step old ones, and each of these is stride long."


# The shape of logits (sequences, tokens, vocabulary), of which a loop keeps logits[:, -1] at each
# step; the bytes of a number; and the bytes that are free. The last has two dimensions, as the
# matrix in the notebook, so that nobody multiplies three sizes.
@function(
    [
        ((2, 3, 10), 8, 4000),
        ((32, 1024, 50257), 2, 80 * 10**9),
        ((5, 7, 4), 4, 5600),
        ((4, 8, 16), 2, 9000),
        ((4, 4, 20), 1, 1000),
        ((4, 500), 2, 30_000),
    ],
    hints=(
        "Of the opening's matrix, a single row was kept, and yet all of its bytes stayed.",
        "Each step keeps the whole storage: all numbers of shape, times number_bytes. Count how "
        "often that goes into free_bytes.",
    ),
)
def steps_that_fit(shape: tuple[int, ...], number_bytes: int, free_bytes: int) -> Answers:
    """The check of a reader's steps_that_fit(…): how many steps a loop that keeps views can go."""
    # It can go on as long as what it keeps fits into the bytes that are free at the beginning.
    numbers = math.prod(shape)
    steps = free_bytes // (numbers * number_bytes)
    yield steps, "At each step, the view keeps all of its storage, although it shows only a part."
    in_view = numbers // shape[-2]  # the numbers of the last token alone
    yield (
        free_bytes // (in_view * number_bytes),
        "That is what the view shows. It keeps its whole storage, with all the other rows.",
    )
    exact = free_bytes / (numbers * number_bytes)
    yield exact, "Half a step does not fit: round down, with //."
    round_down = "The last of these does not fit any more: round down."
    yield math.ceil(exact), round_down
    yield round(exact), round_down
    yield free_bytes // numbers, "That is how many steps fit if a number takes a single byte."
    last_one_fits = (
        "That is one step too few: the last one fits if it takes no more than what is left."
    )
    yield steps - 1, last_one_fits
    yield (free_bytes - 1) // (numbers * number_bytes), last_one_fits
    with_copy = numbers + in_view  # as if the view were a copy that is kept besides the storage
    yield free_bytes // (with_copy * number_bytes), "A view takes no numbers of its own."
    yield numbers * number_bytes, "That is what a single step keeps. How often does it fit?"


# A shape and its strides.
@function(
    [
        ((3, 4), (4, 1)),
        ((5, 4), (0, 1)),
        ((6, 3), (1, 1)),
        ((4, 3), (6, 2)),
        ((2, 3, 2), (4, 2, 4)),
    ],
    hints=(
        "Without the offset, an element's position is the sum of index × stride.",
        "Collect the positions of all elements in a set, in which each occurs once: "
        "itertools.product(*map(range, shape)) goes through the indices.",
    ),
)
def positions(shape: tuple[int, ...], stride: tuple[int, ...]) -> Answers:
    """The check of a reader's positions(shape, stride): how many positions the elements have."""
    # A position of the storage on which several elements lie counts once.
    # The position of the last element; the first one is at 0.
    last = sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    grid = torch.arange(last + 1).as_strided(shape, stride)
    used = grid.unique().tolist()  # each element of the grid is its own position
    yield len(used), "Five tensors, with rows that repeat, overlap, or leave gaps."
    yield grid.numel(), "That is how many elements there are. Some share a position."
    yield last + 1, "That counts the positions in between, too, on which no element is."
    yield last, "That is the last position, and the first one is 0. How many are used in between?"
    # As if two elements shared a position only where a stride is 0: along all other dimensions each
    # index counts.
    moving = [size for size, step in zip(shape, stride, strict=True) if step]
    yield (
        math.prod(moving),
        "A stride of 0 is one way to share. Windows that overlap share positions, too.",
    )
    yield (
        grid.numel() // math.prod(moving),
        "In dimensions whose stride is 0, a step leads to no other position: "
        "count only the others.",
    )
    yield used, "Those are the positions. Return how many they are."


# How many numbers there are, the width of a window, and the step from one window to the next.
@function(
    [(8, 3, 1), (10, 4, 2), (12, 4, 3), (5, 5, 1), (9, 3, 3), (100, 16, 7)],
    gives=("shape", "strides"),
    hints=(
        "A row for each window: the second size is width, and inside a window each step is 1.",
        "The last window begins at n - width at the latest. Windows begin at 0, step, 2 * step, "
        "and so on: count them.",
    ),
)
def strided_windows(n: int, width: int, step: int) -> Answers:
    """The check of a reader's strided_windows(n, width, step): shape and strides of all windows."""
    of_torch = torch.arange(n).unfold(0, width, step)
    shape = tuple(of_torch.shape)
    stride = (step, 1)
    yield (shape, stride), "Six cases, as torch's unfold has them; in one, windows only touch."
    count = shape[0]
    yield (
        ((count - 1, width), stride),
        "One window is missing: the last begins at n - width or just before. Add 1 for the first.",
    )
    yield (
        ((-(-n // step), width), stride),  # n / step, rounded up
        "The last of those windows reaches beyond the end. The last begins at n - width at most.",
    )
    yield (
        ((n - width + 1, width), stride),
        "That counts a window at each position. Only every step-th one counts.",
    )
    yield (
        (((n - width) / step + 1, width), stride),
        "A number of windows is whole: round down, with //.",
    )
    yield (
        (((n - width + 1) // step, width), stride),
        "Round down first, then add 1: (n - width) // step + 1.",
    )
    yield (
        ((n // width, width), (width, 1)),
        "Those windows do not overlap. The next one begins step numbers later, not width.",
    )
    yield (
        (shape, (width, 1)),
        "The shape is right. But the next window begins step numbers later, not width.",
    )
    yield (shape, (1, 1)), "Those windows begin at neighbouring positions."
    yield (shape, (1, step)), "The first stride leads to the next window: step."
    yield shape, "That is the shape alone. The strides are wanted, too."
    yield (stride, shape), "The shape comes first, then the strides."


# How many numbers are read, how many places apart they are, and the bytes of each.
@function(
    [(64, 3, 4), (17, 1, 4), (100, 20, 4), (50, 40, 2), (924, 7, 1)],
    hints=(
        "Number i begins at byte i × stride × number_bytes.",
        "The line of a byte is byte // 64. How many different ones are there? A set keeps each "
        "only once.",
    ),
)
def lines_read(count: int, stride: int, number_bytes: int) -> Answers:
    """The check of a reader's lines_read(count, stride, number_bytes): the cache lines read."""
    # Numbers that lie `stride` places apart are read. Memory is read in lines of 64 bytes, and
    # a line with several of the numbers is read once.
    step = stride * number_bytes
    lines = {i * step // LINE_BYTES for i in range(count)}
    yield len(lines), "Five ways through memory, in which lines are shared, read once or skipped."
    yield count, "That is a line for each number. Numbers that are close together share one."
    span = count * step / LINE_BYTES
    round_up = "A line of which only a part is used is read as well: round up."
    yield math.floor(span), round_up
    yield span, round_up
    yield (
        math.ceil(span),
        "That is every line that the numbers span. Beyond 64 bytes a step, some are skipped.",
    )
    packed = math.ceil(count * number_bytes / LINE_BYTES)
    yield packed, "Those are the lines of numbers side by side. Here they are stride apart."
    # As if a line had 64 numbers.
    of_numbers = {i * stride // LINE_BYTES for i in range(count)}
    yield len(of_numbers), "A line has 64 bytes, not 64 numbers."
    yield max(lines), "That is the number of the last line, and the first one has number 0."


def _in_numbers(mask: object, *_: object) -> object:
    """Return a mask of bools in zeros and ones, and an answer of another kind as it is.

    So a mask of bools and one of numbers are both compared with the course's, which has numbers.
    Each `read` gets the answer and the arguments of its case; this one needs no arguments.
    """
    if isinstance(mask, torch.Tensor) and mask.dtype == torch.bool:
        return mask.double()
    return mask


@function(
    [(6, 3), (8, 1), (7, 7), (5, 2), (9, 4)],
    read=_in_numbers,
    hints=(
        "torch.ones(tokens, tokens).tril() leaves out the keys ahead. Those too far back stay.",
        "tril(-width) has what is too far back, width or more columns left of the diagonal.",
        "With i = torch.arange(tokens), i[:, None] - i says how far back each key is.",
    ),
)
def may_see(tokens: int, width: int) -> Answers:
    """The check of a reader's may_see(tokens, width): which keys each query may see."""
    rows = []
    for query in range(tokens):
        rows.append([0 <= query - key < width for key in range(tokens)])
    mask = torch.tensor(rows).double()
    yield mask, "Five masks: each query sees its own token and the width - 1 before it."
    causal = torch.ones(tokens, tokens).tril()
    # tril(-n) keeps what is n or more columns left of the diagonal: keys n or more tokens back.
    # triu(1 - n) keeps the rest: keys ahead, and keys less than n tokens back.
    yield causal, "That is the causal mask. Keys that are too far back have to go, too."
    yield (
        causal - causal.tril(-width - 1),
        "That is one key too many: the query's own token is one of the width.",
    )
    yield (
        causal.triu(2 - width),
        "That is one key too few: its own token and width - 1 before it are width keys.",
    )
    yield (
        mask + mask.T - torch.eye(tokens),
        "That looks ahead as well. A key is the query's own token, or one before it.",
    )
    yield (
        torch.ones(tokens, tokens).triu(1 - width),
        "That leaves out only the keys that are too far back. Those ahead have to go, too: tril().",
    )
    yield mask.T, "That looks ahead: the rows are the queries, and the columns the keys."
    yield 1 - mask, "That is what has to be left out. Here True means that the key may be seen."
    yield causal.tril(-width), "Those are the keys that are too far back, and only they."
    yield (
        mask.log(),  # 0 and -inf
        "That is what is added to the scores. Wanted is True where a key may be seen.",
    )
