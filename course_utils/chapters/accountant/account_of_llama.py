"""The accountant so far: each notebook runs it once, on the same model, and shows what it can say.

The model is Llama 3 8B, and the run is one that a reader could plan: 15 trillion tokens, as Meta
took, on 1,024 H100s that reach half of their peak.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

import torch

import course_utils.core.accountant as course
import course_utils.core.accountant_file as files
from course_utils.chapters.accountant import CHAPTER_OF, offered
from course_utils.core.say.language import in_a_row, template, translated
from course_utils.core.say.tables import Table
from course_utils.core.say.wording import in_words

NAME = "Llama 3 8B"
CONFIG = files.OURS.with_name("configs") / "llama-3-8b.json"
MODEL = course.model_from(json.loads(CONFIG.read_text(encoding="utf-8")))
SEQUENCE = MODEL.context  # tokens; each GPU takes one sequence at a time
GPUS = 1024
TOKENS = 15e12
SHARE = 0.5  # of the peak: assumed
# AdamW in fp32. The reader's own `recipe` comes only in notebook 7.
FP32_ADAMW = course.recipe("fp32 adamw")
SECONDS_BETWEEN_FAILURES = course.GPU_DAYS_PER_FAILURE * course.SECONDS_PER_DAY / GPUS
# The chapters in their order, each once, as a dict has each key once.
NOTEBOOKS = list(dict.fromkeys(CHAPTER_OF.values()))
# Whose a term is, as the table's rows keep it.
NOTEBOOK = "notebook "  # before the number of the one in which the term comes
YOURS = template("yours")
OURS = template("the course's")
ONE_LINE = template("{counted} of {lines} lines has a number.")
LINES_SO_FAR = template("{counted} of {lines} lines have a number.")
# Whose terms count them: by whether one line is counted by a term of the reader's, and whether some
# are counted by the course's.
WHOSE = {
    (True, False): template("It is counted by a term that you wrote."),
    (False, False): template("All of them are counted by terms that you wrote."),
    (True, True): template(
        "{yours} of them is counted by a term that you wrote, and {ours} by the course's."
    ),
    (False, True): template(
        "{yours} of them are counted by terms that you wrote, and {ours} by the course's."
    ),
}


@dataclass(frozen=True)
class Line:
    """A line of the account: its words, the term that counts it, the unit, and how it is counted.

    A term is a function, such as the reader's `parameters`. `count` gets the term, calls it for the
    model, and returns the number for the line.
    """

    words: str
    term: str
    unit: str
    count: Callable[[Callable], float]

    @property
    def notebook(self) -> int:
        """The number of the notebook in which the term is written."""
        return 1 + NOTEBOOKS.index(CHAPTER_OF[self.term])


def _embedding_and_row(storage_bytes: Callable) -> int:
    """Count the bytes behind the embedding and one of its rows. The row is a view."""
    # On the device "meta", tensors have no memory.
    embedding = torch.empty(MODEL.vocabulary, MODEL.width, dtype=torch.bfloat16, device="meta")
    return storage_bytes([embedding, embedding[0]])


def _layer_weights(matrices: Callable) -> int:
    """Count the weights in the matrices of one layer."""
    return sum(inputs * outputs for inputs, outputs in matrices(MODEL).values())


def _run_days(days: Callable) -> float:
    """Return the days of the run, by notebook 4's rule: a step costs three forward passes."""
    sequences = TOKENS / SEQUENCE
    forward_flops = offered("forward_flops")
    run_flops = 3 * forward_flops(MODEL, 1, SEQUENCE) * sequences
    return days(run_flops, GPUS, course.PEAK, SHARE)


def _fp32_state_bytes(state_bytes: Callable) -> int:
    """Return the bytes of the whole model's state, with AdamW in fp32 on one GPU."""
    # `offered` returns the reader's own term if it is right, else the course's.
    count_parameters = offered("parameters")
    parameters = count_parameters(MODEL)
    # 1 GPU, and ZeRO's stage 0. By position, because a reader's names may be others.
    bytes_by_part = state_bytes(parameters, FP32_ADAMW, 1, 0)
    return sum(bytes_by_part.values())


def _parameter_bytes(recipe: Callable) -> int:
    """Return the bytes of state for each parameter, in mixed precision with AdamW."""
    # Each part has a tuple of dtypes: ("fp32", "fp32") is what the optimizer keeps.
    parts = recipe("bf16+master adamw").values()
    return sum(course.BYTES[dtype] for dtypes in parts for dtype in dtypes)


def _interval_s(interval: Callable) -> float:
    """Return the seconds between two saves of the run."""
    return interval(course.SAVE_S, SECONDS_BETWEEN_FAILURES)


def _lost_share(lost_share: Callable) -> float:
    """Return the share of the run's time that saves and failures take, at most."""
    interval_s = _interval_s(offered("interval"))
    return lost_share(interval_s, course.SAVE_S, SECONDS_BETWEEN_FAILURES, course.RESTART_S)


LINES = (
    Line(
        template("the embedding, in bf16"),
        "tensor_bytes",
        "bytes",
        lambda term: term((MODEL.vocabulary, MODEL.width), "bf16"),
    ),
    Line(
        template("the embedding and one of its rows"), "storage_bytes", "bytes", _embedding_and_row
    ),
    Line(
        template("the matrices of a layer"),
        "matrices",
        "millions of weights",
        lambda term: _layer_weights(term) / 1e6,
    ),
    Line(
        template("the whole model"),
        "parameters",
        "billions of parameters",
        lambda term: term(MODEL) / 1e9,
    ),
    Line(
        template("FLOPs of a forward pass, 8,192 tokens"),
        "forward_flops",
        "FLOPs",
        lambda term: term(MODEL, 1, SEQUENCE),
    ),
    Line(template("days on 1,024 H100s at half of their peak"), "days", "days", _run_days),
    Line(
        template("what a layer keeps of 8,192 tokens, bf16"),
        "layer_bytes",
        "bytes",
        lambda term: term(MODEL, 1, SEQUENCE, "bf16"),
    ),
    Line(
        template("state with AdamW in fp32, on one GPU"),
        "state_bytes",
        "bytes",
        _fp32_state_bytes,
    ),
    Line(template("state of a parameter, bf16 with a master"), "recipe", "bytes", _parameter_bytes),
    Line(template("time between two saves"), "interval", "seconds", _interval_s),
    Line(template("share of the time that is lost, at most"), "lost_share", "share", _lost_share),
    Line(
        template("what a step adds, all recomputed, bf16"),
        "step_bytes",
        "bytes",
        lambda term: term(MODEL, 1, SEQUENCE, "bf16", MODEL.layers),
    ),
    Line(
        template("FLOPs of a step, all layers recomputed"),
        "step_flops",
        "FLOPs",
        lambda term: term(MODEL, 1, SEQUENCE, MODEL.layers),
    ),
)


class SoFar(Table):
    """The table of the account, with a line below on how far it has come.

    Its `rows` are English, and are translated where they are shown.
    """

    def _rows(self) -> list[list[str]]:
        """Return the rows in the reader's language."""
        head, *lines = self.rows
        shown = [[translated(cell) for cell in head]]
        for words, value, term, whose in lines:  # a term is a function's name
            shown.append([translated(words), translated(value), term, _whose_in_language(whose)])
        return shown

    def _below(self) -> str:
        """Return the line below the table."""
        whose = [row[-1] for row in self.rows[1:]]  # the last column, below its head
        yours = whose.count(YOURS)
        ours = whose.count(OURS)
        counted = yours + ours  # other lines have "notebook 4" there
        how_far = ONE_LINE if counted == 1 else LINES_SO_FAR
        below = translated(how_far, counted=f"{counted}", lines=f"{len(LINES)}")
        if not yours:
            return below
        sentence = WHOSE[yours == 1, ours > 0]
        return in_a_row(below, translated(sentence, yours=f"{yours}", ours=f"{ours}"))


def _whose_in_language(whose: str) -> str:
    """Return whose a term is, or the notebook in which it comes, in the reader's language."""
    number = whose.removeprefix(NOTEBOOK)
    if number == whose:
        return translated(whose)
    return translated("notebook {number}", number=number)


def said_until(notebook: int) -> SoFar:
    """Run the accountant on Llama 3 8B, with the terms of the notebooks up to this one.

    A term is the reader's own if they have written it and it is right, else the course's. Raise a
    ValueError if there is no notebook of that number.
    """
    if notebook not in range(1, len(NOTEBOOKS) + 1):
        raise ValueError(f"There is no notebook {notebook!r}: it is a number from 1 to 8.")
    rows = [["", NAME, template("term"), template("whose")]]
    for line in LINES:
        if line.notebook > notebook:
            rows.append([line.words, "?", line.term, f"{NOTEBOOK}{line.notebook}"])
            continue
        term = offered(line.term)
        value = in_words(line.count(term), line.unit)
        rows.append([line.words, value, line.term, _whose(term)])
    return SoFar(rows)


def _whose(term: object) -> str:
    """Return whose this term is: a function that the course's file defines is the course's."""
    # A function that functools made has no code. Only a reader's term can be one.
    code = getattr(term, "__code__", None)
    is_ours = code is not None and code.co_filename == str(files.OURS)
    return OURS if is_ours else YOURS
