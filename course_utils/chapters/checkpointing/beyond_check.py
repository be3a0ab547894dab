"""Exercises in *Beyond* of notebook 08; `check` imports them by name, and has the others.

An exercise takes the arguments of a case. It yields the right answer with the sentence on it, and
then the answers of likely mistakes, each with the advice on the mistake.

Letters in the sentences: τ is the time between two saves, C that of a save, R that of a restart,
and M that between two failures of the run.
"""

import math

from course_utils.chapters.checkpointing import parts
from course_utils.core import predict
from course_utils.core.say import Number
from course_utils.engine.judging import Answers, function

DAY_S = 86_400

# Days of work on one GPU, GPUs, days between failures of one, seconds of a save and of a restart.
RUNS = [
    (147_456.0, 16_384, 2112.0, 60.0, 300.0),
    (3_000.0, 1_024, 50.0, 10.0, 0.0),
    (147_456.0, 262_144, 2112.0, 300.0, 600.0),
    (100.0, 8, 30.0, 30.0, 60.0),
]


@function(
    RUNS,
    tolerance=1e-4,
    unit="days",
    hints=(
        "Begin with M, in seconds: 86_400 * failure_days / gpus. Then τ = √(2CM), and the lost "
        "share is C / τ + τ / 2M + R / M.",
        "Without failures the run takes gpu_days / gpus. That work has only 1 - lost of the time.",
    ),
)
def days_with_failures(
    gpu_days: Number, gpus: int, failure_days: Number, save_s: Number, restart_s: Number
) -> Answers:
    """The check of a reader's days_with_failures(…): a run's days, at the best interval."""
    failure_s = failure_days * DAY_S / gpus
    restarts = restart_s / failure_s
    at_best = _lost_at_best(save_s, failure_s)  # the share of saves and lost work
    lost = at_best + restarts
    shared = gpu_days / gpus
    yield (
        _days(shared, lost),
        "The work takes 1 - lost of the time. Where saves and failures take it all, "
        "the run never ends.",
    )
    # As if a single GPU could fail, and not any of them.
    of_one_gpu = failure_days * DAY_S
    alone = _lost_at_best(save_s, of_one_gpu) + restart_s / of_one_gpu
    yield _days(shared, alone), "Any of the GPUs can stop the run: divide failure_days by gpus."
    yield shared * (1 + lost), "The share is of the whole time, lost time included: / (1 - lost)."
    yield _days(shared, at_best), "Each failure also costs a restart: one in M seconds."
    for wrong_share, advice in _shares_of_saves(save_s, failure_s):
        yield _days(shared, wrong_share + restarts), advice
    yield shared / (1 - lost), "A lost share of 1 or more leaves no time for work: return math.inf."
    yield _days(gpu_days, lost), "The GPUs share the work: gpu_days / gpus."
    # With M in days, and all else in seconds.
    mixed_units = _lost_at_best(save_s, failure_s / DAY_S) + DAY_S * restarts
    yield _days(shared, mixed_units), "Days and seconds are mixed: a day has 86,400 seconds."
    exact_lost = predict.wasted_share(
        predict.young_seconds(save_s, failure_s), save_s, failure_s, restart_s
    )
    yield _days(shared, exact_lost), "That is the exact share. Here the sum of the three is wanted."
    yield shared, "That is the time without a save and without a failure."
    yield lost, "That is the lost share. Return the days."


def _shares_of_saves(save_s: Number, failure_s: Number) -> Answers:
    """Yield wrong shares of the time that saves and lost work take, each with the advice on it."""
    best_s = predict.young_seconds(save_s, failure_s)
    without_2_s = best_s / math.sqrt(2)
    yield (
        save_s / without_2_s + without_2_s / (2 * failure_s),
        "The best interval is √(2CM), with the 2.",
    )
    yield (
        save_s / best_s + best_s / failure_s,
        "A failure costs half an interval of work on average: τ / 2M, and not τ / M.",
    )
    yield (
        save_s / best_s,
        "Saves take C / τ and lost work τ / 2M. At the best interval they are equal: count both.",
    )


def _lost_at_best(save_s: Number, failure_s: Number) -> Number:
    """Return the share that saves and lost work take at the best interval, found by trying."""
    # Intervals from one second to a hundred days, each 0.2 % longer than the one before.
    # Trying is slower than the formula √(2CM), but it cannot share a mistake with it.
    tried = [1.002**n for n in range(8_000)]
    return min(save_s / every_s + every_s / (2 * failure_s) for every_s in tried)


def _days(work: Number, lost: Number) -> Number:
    """Return the days of a run with that many days of work, of whose time a share is lost.

    If the share is 1 or more, the run never ends.
    """
    return work / (1 - lost) if lost < 1 else math.inf


@function(
    [  # seconds of a copy, of writing it, between two copies, between failures, of a restart
        (2.0, 60.0, 211.0, 11_128.0, 300.0),
        (5.0, 600.0, 1_200.0, 86_400.0, 120.0),
        (1.0, 30.0, 40.0, 3_600.0, 0.0),
    ],
    tolerance=1e-3,
    parts=parts.of_lost_in_background,
    hints=(
        "In w of every τ seconds the last copy is still being written. Work out how much more a "
        "failure in that time destroys than one after it.",
        "A whole interval more, in a share w / τ of the failures: on average w / τ * τ = w.",
    ),
)
def lost_in_background(
    copy_s: Number, write_s: Number, interval_s: Number, failure_s: Number, restart_s: Number
) -> Answers:
    """The check of a reader's lost_in_background(…), for a run that works while it saves."""
    # The run stops only while its state is copied. A thread writes the copy to the disk, and
    # w, which is write_s, is the time that this takes.
    copies = copy_s / interval_s
    restarts = restart_s / failure_s
    redone_s = _redone_s(write_s, interval_s)
    right = copies + (redone_s + restart_s) / failure_s
    yield right, "A failure costs half of τ, and in w of τ cases a whole τ more: τ / 2 + w."
    half = interval_s / 2
    all_written = copies + half / failure_s + restarts
    yield (
        all_written,
        "A copy that is still being written can't be loaded: the run falls back one copy further.",
    )
    stopped_by_writes = all_written + write_s / interval_s
    yield stopped_by_writes, "The run goes on while the thread writes: only the copy stops it."
    half_further = all_written + write_s / 2 / failure_s
    yield half_further, "It falls back a whole interval further, and not half of one: w / τ * τ."
    always_one_further = all_written + interval_s / failure_s
    yield always_one_further, "Only in w of every τ seconds is the last copy incomplete: w / τ * τ."
    whole_interval_redone = right + half / failure_s
    yield whole_interval_redone, "Since the last copy, half of τ has been done on average."
    yield right - restarts, "Each failure costs a restart, too: one in M seconds."
    yield right - copies, "The copies stop the run, too: C of every τ seconds."
    # As if each copy came on top of an interval, so that both together were its whole time.
    of_both = right - copies + copy_s / (interval_s + copy_s)
    yield of_both, "Here the copy is counted as C of every τ seconds, as a save is in Young's rule."


def _redone_s(write_s: Number, interval_s: Number) -> Number:
    """Return the mean seconds of work that a failure destroys, over the moments of an interval.

    While the latest copy is not written yet, the run falls back to the one before.
    """
    moments = 10_000
    total_s = 0.0
    for moment in range(moments):  # the middle of each ten-thousandth of the interval
        since_copy_s = (moment + 0.5) / moments * interval_s
        is_written = since_copy_s >= write_s
        total_s += since_copy_s if is_written else since_copy_s + interval_s
    return total_s / moments


@function(
    [(2, 1), (2, 4), (1, 1), (1, 3), (6, 1), (6, 2), (3, 8)],
    tolerance=1e-6,
    hints=(
        "A segment has products * segment matrix products. One of them does not run again: the "
        "share 1 / (products * segment).",
        "The forward pass is 2 of the 6, so 2 * (1 - that share) is added to 6.",
    ),
)
def flops_ratio(products: int, segment: int) -> Answers:
    """The check of a reader's flops_ratio(products, segment): what recomputing costs in FLOPs."""
    # They are a step's FLOPs with recomputing over those without. A layer has `products`
    # matrix products, and `segment` layers are recomputed together.
    # Counted in matrix products of one segment: each takes 2 forward and 4 backward.
    in_all = products * segment
    run_again = in_all - 1
    right = (6 * in_all + 2 * run_again) / (6 * in_all)
    yield right, "One product of each segment is left out. With a single one, nothing runs again."
    # The right ratio is (6 + 2 · (1 - 1 / in_all)) / 6, which is (8 - 2 / in_all) / 6. The next
    # ones leave out another share than 1 / in_all.
    yield 8 / 6, "With early stop, the last product of each segment is not run again."
    one_a_layer = (8 - 2 / products) / 6
    yield one_a_layer, "Only a segment's last layer leaves a product out, and not each layer."
    of_two = (8 - 1 / segment) / 6
    yield of_two, "That holds for layers of two products. Here a layer has as many as `products`."
    yield (8 - 2 / segment) / 6, "The last layer leaves out one product, and not all of its own."
    yield right - 1, "That is what is added. A step without recomputing counts as 1."
    one_of_six = (8 - 1 / in_all) / 6
    yield (
        one_of_six,
        "The forward pass is 2 of the 6, so one product of it is 2 / (products * segment).",
    )
    yield 1 / right, "That is the other way round: the FLOPs with recomputing are the larger ones."


STACKS = [  # layers, and the bytes of a layer's input and of a whole layer
    (16, 1, 9),
    (22, 1, 1),
    (50, 3, 4),
    (100, 1, 1),
    (16, 1, 1),
    (7, 1, 1),
    (12, 2, 3),
    (1, 4, 36),
    (30, 5, 5),
]


@function(
    STACKS,
    hints=(
        "For one s: begins = range(0, layers, s). Segment number n has min(s, layers - begin) "
        "layers.",
        "While it is in memory whole, n inputs wait: n * its_input + its layers * layer. The peak "
        "is the largest of these sums.",
        "min(range(1, layers + 1), key=peak) gives the smallest s of those with the lowest peak.",
    ),
)
def best_segment(layers: int, its_input: Number, layer: Number) -> Answers:
    """The check of a reader's best_segment(layers, its_input, layer): the s with least peak."""

    def sums(segment: int) -> list[Number]:
        """Return what is held while each segment is in memory whole, from the first to the last."""
        # Meanwhile the inputs of the segments before it wait, one for each segment.
        lengths = [min(segment, layers - begin) for begin in range(0, layers, segment)]
        return [number * its_input + length * layer for number, length in enumerate(lengths)]

    def peak(segment: int) -> Number:
        return max(sums(segment))

    segments = range(1, layers + 1)
    right = min(segments, key=peak)
    yield right, "Nine stacks, whose layers keep one to nine times their input."
    yield round(math.sqrt(layers)), "√L is for layers that keep no more than their input."
    root = math.sqrt(layers * its_input / layer)
    for whole in (round(root), math.ceil(root)):
        in_range = min(layers, max(1, whole))
        yield (
            in_range,
            "The formula takes the last segment for a whole one. It may be shorter: try all s.",
        )
    yield 1, "That is right only where a layer keeps about L/2 times its input, or more."
    divisors = min((s for s in segments if layers % s == 0), key=peak)
    yield divisors, "s need not divide the number of layers: the last segment may be shorter."
    rounded_up = min(segments, key=lambda s: math.ceil(layers / s) * its_input + s * layer)
    yield (
        rounded_up,
        "⌈L / s⌉ takes the last segment for a whole one. If it is shorter, another has the peak.",
    )
    largest = min(segments, key=lambda s: (peak(s), -s))  # the largest s with the lowest peak
    yield largest, "Several have the lowest peak. Return the smallest of them."
    yield peak(right), "That is the lowest peak. Return the s that has it."
    total = min(segments, key=lambda s: sum(sums(s)))
    yield total, "The peak is the largest of these sums, and not their total."


SAVED_ROWS = [  # rows of a matrix, GPUs that saved it, GPUs that load it, the number of one of them
    (10, 4, 3, 1),
    (10, 4, 3, 2),
    (5, 2, 4, 3),
    (1_000, 64, 48, 7),
    (12, 3, 6, 4),
    (7, 7, 1, 0),
    (64, 8, 16, 5),
]
Reads = dict[int, tuple[int, int]]  # by the number of a file: where the rows begin and end in it


@function(
    SAVED_ROWS,
    hints=(
        "size = -(-rows // saved_by) is rows / saved_by, rounded up. File n has the rows from "
        "n * size up to, and without, min((n + 1) * size, rows).",
        "In the whole matrix, what is needed of a file begins at the larger of two beginnings, "
        "and ends at the smaller of two ends. Only if it begins before it ends is there any.",
        "In the file itself, row n * size of the matrix is row 0: subtract n * size.",
    ),
)
def rows_to_read(rows: int, saved_by: int, loaded_by: int, rank: int) -> Answers:
    """The check of a reader's rows_to_read(rows, saved_by, loaded_by, rank)."""
    # It has the rows that GPU number `rank` reads: {file: (begin, end)}, counted in the file.
    in_a_file = math.ceil(rows / saved_by)
    to_load = math.ceil(rows / loaded_by)
    files = _parts(rows, saved_by, in_a_file)
    mine = _parts(rows, loaded_by, to_load)[rank]
    right = _reads(files, mine)
    yield right, "Seven ways to load, on more GPUs than saved and on fewer; some GPUs get nothing."
    in_the_matrix = {}
    for n, (begin, end) in right.items():
        first_row = n * in_a_file
        in_the_matrix[n] = (first_row + begin, first_row + end)
    yield in_the_matrix, "Those are rows of the whole matrix. Count from the file's own first row."
    inclusive = {n: (begin, end - 1) for n, (begin, end) in right.items()}
    yield inclusive, "The end is the first row that is not needed, as in a slice."
    whole_files = {n: (0, len(files[n])) for n in right}
    yield whole_files, "It needs not all of each file: only the rows that are its own, too."
    of_its_own_file = {rank: (0, len(files[rank]))} if rank < saved_by else {}
    yield of_its_own_file, "Another number of GPUs loads: its rows are not those of one file."
    smaller_files = _parts(rows, saved_by, rows // saved_by)
    rounded_down = _reads(smaller_files, _parts(rows, loaded_by, rows // loaded_by)[rank])
    yield rounded_down, "Round rows / GPUs up, and not down: otherwise the last rows are lost."
    many = 9 * rows  # more than the matrix has, so that its end cuts no part short
    uncut = _reads(_parts(many, saved_by, in_a_file), _parts(many, loaded_by, to_load)[rank])
    yield uncut, "The last file ends where the rows end: cut what you need at `rows`, too."
    of_each_file = {}
    for n, file in enumerate(files):
        # How many rows of the file lie before the wanted rows, and how many before their end.
        before_begin = sum(row < mine.start for row in file)
        before_end = sum(row < mine.stop for row in file)
        of_each_file[n] = (before_begin, before_end)
    yield of_each_file, "Leave out the files of which it needs nothing."


def _parts(rows: int, gpus: int, size: int) -> list[range]:
    """Return the rows of each GPU, `size` at most; the last GPUs may have fewer or none.

    >>> _parts(10, 4, 3)
    [range(0, 3), range(3, 6), range(6, 9), range(9, 10)]
    """
    return [range(rows)[n * size : (n + 1) * size] for n in range(gpus)]


def _reads(files: list[range], mine: range) -> Reads:
    """Return where the wanted rows are in each file that has some, found row by row."""
    reads = {}
    for number, file in enumerate(files):
        wanted = [place for place, row in enumerate(file) if row in mine]
        if wanted:
            reads[number] = (wanted[0], wanted[-1] + 1)
    return reads
