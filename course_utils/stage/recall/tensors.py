"""Questions of notebook 2: where the numbers lie, and which operations copy them."""

import math

from course_utils.core import accountant
from course_utils.core.say import in_words
from course_utils.stage.recall.question import Asked, Mistake, Question

LINE_BYTES = 64  # of a cache line, on most CPUs


def _kept(rows: int, columns: int, dtype: str) -> Asked:
    storage = accountant.tensor_bytes((rows, columns), dtype)
    row = accountant.tensor_bytes((columns,), dtype)
    return Asked(
        f"x has {rows:,} × {columns:,} numbers in {dtype}. You keep row = x[0], and delete x. How "
        "many bytes stay in memory?",
        answer=storage,
        unit="bytes",
        derivation="The row is a view, and a view keeps its whole storage: "
        f"{rows:,} × {columns:,} × {accountant.BYTES[dtype]} bytes = {in_words(storage, 'bytes')}.",
        mistakes=(
            Mistake(row, "That is what the row shows. The storage behind it is all of x."),
            Mistake(0, "The row still needs the storage, so it is not freed."),
        ),
    )


def _position(a: int, b: int, c: int, i: int, j: int, k: int) -> Asked | None:
    if i >= a or j >= b or k >= c:
        return None
    position = (i * b + j) * c + k
    return Asked(
        f"x is a new tensor of shape ({a}, {b}, {c}). At which position of its storage, counted "
        f"from 0, is x[{i}, {j}, {k}]?",
        answer=position,
        is_exact=True,
        derivation=f"The strides are {b * c}, {c} and 1. {i}·{b * c} + {j}·{c} + {k}·1 = "
        f"{position}.",
        mistakes=(
            Mistake(
                i + a * j + a * b * k,
                "That would be so if a step in the first dimension led to the next position. In "
                "torch, a step in the last one does.",
            ),
            Mistake(position + 1, "Positions are counted from 0."),
        ),
    )


def _stride(a: int, b: int, c: int, order: str, dimension: int) -> Asked | None:
    sizes = (a, b, c)
    strides = (b * c, c, 1)
    before = [int(place) for place in order.split(", ")]  # where each new dimension was
    new_sizes = [sizes[place] for place in before]
    stride = strides[before[dimension]]
    of_a_copy = math.prod(new_sizes[dimension + 1 :])
    if stride == 1 or stride in sizes:
        return None  # the answer would stand in the question
    return Asked(
        f"x is a new tensor of shape ({a}, {b}, {c}). What is the stride of dimension {dimension} "
        f"of x.permute({order})?",
        answer=stride,
        is_exact=True,
        derivation=f"x has the strides {strides}. Its dimension {before[dimension]} becomes "
        f"dimension {dimension}, and takes its stride along: {stride}.",
        mistakes=(
            Mistake(
                of_a_copy,
                "That would be the stride in a copy. A permutation copies nothing, so each "
                "dimension keeps its stride.",
            ),
        ),
    )


def _offset(rows: int, columns: int, i: int, j: int) -> Asked:
    offset = i * columns + j
    return Asked(
        f"x is a new tensor of shape ({rows}, {columns}). What is the offset of x[{i}:, {j}:] in "
        "its storage?",
        answer=offset,
        is_exact=True,
        derivation=f"The strides of x are {columns} and 1, and the slice begins at x[{i}, {j}]: "
        f"{i}·{columns} + {j}·1 = {offset}.",
        mistakes=(
            Mistake(i + j, "A step down is a whole row of x, not one number."),
            Mistake(
                i * (columns - j) + j,
                "The slice is narrower, but in the storage a row is as long as it was.",
            ),
            Mistake(
                j * rows + i,
                "Rows lie one after the other, so a step down passes a whole row, and a step to "
                "the right one number.",
            ),
        ),
    )


def _repeated(columns: int, times: int, dtype: str) -> Asked:
    copied = accountant.tensor_bytes((times, columns), dtype)
    return Asked(
        f"row has shape (1, {columns}), in {dtype}. How many bytes does torch allocate for "
        f"row.expand({times}, -1).contiguous()?",
        answer=copied,
        unit="bytes",
        derivation="expand allocates nothing, because its stride is 0. contiguous writes every "
        f"number out: {times:,} × {columns:,} × {accountant.BYTES[dtype]} bytes = "
        f"{in_words(copied, 'bytes')}.",
        mistakes=(
            Mistake(0, "expand alone is free. contiguous then makes a copy."),
            Mistake(copied / times, "That is the row. The copy has it many times."),
        ),
    )


def _steps(batch: int, tokens: int, vocabulary: int, free_gb: int) -> Asked | None:
    logits = accountant.tensor_bytes((batch, tokens, vocabulary), "bf16")
    steps = int(free_gb * 10**9 // logits)
    kept_rows = accountant.tensor_bytes((batch, vocabulary), "bf16")
    if steps < 4:
        return None
    return Asked(
        f"Each step makes logits of shape ({batch}, {tokens}, {vocabulary}) in bf16, without "
        f"gradients, and a list keeps logits[:, -1] of each. {free_gb} GB are free. How many "
        "steps fit?",
        answer=steps,
        unit="steps",
        tolerance=0.08,
        derivation="The slice is a view and keeps all of the step's logits: "
        f"{batch} × {tokens:,} × {vocabulary:,} × 2 bytes are {in_words(logits, 'bytes')}, and "
        f"{free_gb} GB hold that {steps:,} times.",
        mistakes=(
            Mistake(
                free_gb * 10**9 // kept_rows,
                "The list would need so little only if it kept a copy: logits[:, -1].clone().",
            ),
        ),
    )


def _lines(rows: int, columns: int, dtype: str) -> Asked:
    each = accountant.BYTES[dtype]
    fetched = rows * LINE_BYTES
    return Asked(
        f"x is a new tensor of {rows:,} × {columns:,} numbers in {dtype}, and cache lines have "
        f"{LINE_BYTES} bytes. How many bytes are fetched to add up one column?",
        answer=fetched,
        unit="bytes",
        derivation=f"Each number of a column is in a line of its own. {rows:,} lines × "
        f"{LINE_BYTES} bytes = {in_words(fetched, 'bytes')}, of which {rows * each:,} are used.",
        mistakes=(
            Mistake(
                rows * each,
                f"That is what is used. With each number, its whole line of {LINE_BYTES} bytes is "
                "fetched.",
            ),
        ),
    )


QUESTIONS = (
    Question(
        "tensors.kept",
        "f3d202ff",
        _kept,
        {
            "rows": (512, 1000, 2048, 4096, 10_000),
            "columns": (768, 1024, 5000, 8192),
            "dtype": ("fp32", "bf16", "fp64"),
        },
    ),
    Question(
        "tensors.position",
        "31ea2ba7",
        _position,
        {
            "a": (3, 4, 5),
            "b": (3, 4, 6),
            "c": (5, 7, 8, 10),
            "i": (1, 2, 3),
            "j": (1, 2, 3),
            "k": (0, 2, 3, 4),
        },
    ),
    Question(
        "tensors.stride",
        "27c51426",
        _stride,
        {
            "a": (2, 3, 5),
            "b": (4, 6, 8),
            "c": (3, 5, 7, 10),
            "order": ("0, 2, 1", "1, 0, 2", "1, 2, 0", "2, 0, 1", "2, 1, 0"),
            "dimension": (0, 1, 2),
        },
    ),
    Question(
        "tensors.offset",
        "c90a2e111",
        _offset,
        {
            "rows": (10, 12, 20),
            "columns": (8, 10, 12, 16, 30),
            "i": (2, 3, 5, 7),
            "j": (1, 2, 4, 5),
        },
    ),
    Question(
        "tensors.repeated",
        "f3d202ff",
        _repeated,
        {
            "columns": (500, 1024, 2000, 4096),
            "times": (100, 512, 1000, 4096, 8192),
            "dtype": ("fp32", "bf16", "fp64"),
        },
    ),
    Question(
        "tensors.steps",
        "c90a2e201",
        _steps,
        {
            "batch": (2, 4, 8, 16),
            "tokens": (512, 1024, 2048),
            "vocabulary": (32_000, 50_257, 128_256),
            "free_gb": (8, 16, 40, 64),
        },
    ),
    Question(
        "tensors.lines",
        "0b331977",
        _lines,
        {
            "rows": (500, 1000, 2048, 4096, 10_000, 100_000),
            "columns": (256, 500, 1024),
            "dtype": ("fp32", "bf16", "fp64"),
        },
    ),
)
