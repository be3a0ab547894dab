"""The terms of the reader's accountant: each is judged by what torch counts, or by a slow way to the same number."""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from course_utils import measure
from course_utils.accountant import by_torch
from course_utils.accountant.accountant import BYTES, LOGIT_BYTES, Model
from course_utils.checks.counts import EACH, GPT, LLAMA, QWEN, days, forward_flops, parameters, shapes  # noqa: F401
from course_utils.checks.judging import Answers, function
from course_utils.checks.judging.sentences import shown
from course_utils.checks.state import recipe, state_bytes  # noqa: F401
from course_utils.quantities import Number

TORCH_DTYPES = measure.DTYPES | {name: getattr(torch, name) for name in ("int64", "bool")}
SHAPES = [((4, 8), "bf16"), ((3, 5, 7), "fp32"), ((), "fp64"), ((12288, 49152), "fp16"), ((6, 0), "int64")]


@function([*SHAPES, ((5,), "bool")])
def tensor_bytes(shape: Sequence[int], dtype: str) -> Answers:
    """A reader's tensor_bytes(shape, dtype): what a tensor of that shape takes."""
    right, n = torch.empty(shape, dtype=TORCH_DTYPES[dtype], device="meta").nbytes, BYTES[dtype]
    numbers = right // n
    yield right, "As torch counts six tensors, one without dimensions and one without numbers among them."
    yield numbers, "That is how many numbers there are. Each takes BYTES[dtype] bytes."
    yield 4 * numbers, "Not every number takes 4 bytes: ask BYTES[dtype]."
    yield sum(shape) * n, "The sizes are multiplied, not added."
    yield right * 8, "That is in bits. BYTES says bytes."
    yield math.prod(shape or (0,)) * n, "A tensor without dimensions holds one number."


class _Given(list):
    """A list that is handed on as it is: a copied view of a tensor without memory would no longer be one."""

    def __deepcopy__(self, _: dict) -> "_Given":
        return self

    def __repr__(self) -> str:
        return shown([*self])


def _lists() -> list[tuple[list[Tensor]]]:
    base, other = torch.arange(24.0).view(4, 6), torch.zeros(3, dtype=torch.float64)
    meta, another = (torch.empty(size, 8, device="meta") for size in (1 << 20, 3))
    lists = [base], [base, base.T], [base[1]], [base[:2], base[2:], other.expand(5, 3)], [base, base.clone()]
    return [(tensors,) for tensors in (*lists, [], _Given([meta, meta[0], another]))]


@function(_lists)
def storage_bytes(tensors: Sequence[Tensor]) -> Answers:
    """A reader's storage_bytes(tensors): what they hold together, each storage once, and whole."""
    all_storages, storages = [tensor.untyped_storage() for tensor in tensors], []
    for storage in all_storages:
        if not any(storage._cdata == one._cdata for one in storages):
            storages.append(storage)
    yield (
        sum(one.nbytes() for one in storages),
        "Seven lists, with views, slices, and tensors without memory.",
    )
    once = "Two views of one storage are in memory once."
    yield sum(one.nbytes() for one in all_storages), once
    yield sum(t.nbytes for t in tensors), once
    by_storage = {t.untyped_storage()._cdata: t.nbytes for t in tensors}
    yield sum(by_storage.values()), "A slice keeps its whole storage: ask the storage for its nbytes()."
    by_first = {t.data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    yield sum(by_first.values()), "Views may begin at different numbers: tell storages apart by _cdata."
    by_address = {one.data_ptr(): one.nbytes() for one in all_storages}
    yield sum(by_address.values()), "Without memory, all addresses are 0: tell storages apart by _cdata."
    yield sum(t.numel() for t in tensors), "That is how many numbers there are. Bytes are wanted."
    yield len(storages), "That is how many storages there are. Their bytes are wanted."


@function(EACH)
def matrices(m: Model) -> Answers:
    """A reader's matrices(m): the name of each matrix of a layer, with (inputs, outputs)."""
    right = shapes(m)
    yield right, "As torch builds them: a GPT-2, a Llama and a Qwen."
    turned = {name: shape[::-1] for name, shape in right.items()}
    yield turned, "Inputs first, then outputs: x W has W of (D, K)."
    all_heads = dict.fromkeys(("key", "value"), right["query"])
    yield right | all_heads, "Keys and values have kv_heads heads, and not all."
    square = dict.fromkeys(("query", "out"), (m.width, m.width))
    yield right | square, "Queries are heads × head_width wide, which need not be the width."
    yield right | {"out": right["query"]}, "out leads back, from heads × head_width to the width."
    yield right | {"down": right["up"]}, "down leads back, from inner to the width."
    yield right | {"gate": right["up"]}, "There is a gate only if m.gated."
    ungated = {name: shape for name, shape in right.items() if name != "gate"}
    yield ungated, "If m.gated, there is a gate, with the shape of up."


# LayerNorm keeps two numbers a token for its statistics: 0.09 % of a layer, at a width of 256.
@function([(QWEN, 3, 32, "bf16"), (LLAMA, 1, 96, "bf16"), (GPT, 2, 64, "fp32")], tolerance=0.001)
def layer_bytes(m: Model, batch: int, sequence: int, dtype: str) -> Answers:
    """A reader's layer_bytes(m, batch, sequence, dtype): what autograd keeps of one layer, attention fused."""
    right, n, tokens = by_torch.layer_bytes(m, batch, sequence, dtype), BYTES[dtype], batch * sequence
    sizes = (m.heads * m.head_width, m.kv_heads * m.head_width, m.inner, m.width)
    (queries, keys, inner, width), rows = (size * tokens * n for size in sizes), 4 * tokens * m.heads
    yield right, "As the storages that autograd keeps of three layers; LayerNorm's statistics are left out."
    yield right - rows, "Attention keeps one fp32 number for each row of scores: batch × heads × sequence."
    yield right - rows + rows * n // 4, "The row sums are in fp32 whatever the dtype: 4 bytes each."
    yield (
        right - 2 * width,
        "A normalisation keeps its input, and the next product its result: 4 of the width.",
    )
    yield (
        right - width,
        "One of the model's width is missing: two normalisations, an input and a result each.",
    )
    yield right - queries, "Of attention are kept: queries, keys, values, and its result."
    yield right + (2 + m.head_norms) * (queries - keys), "Keys and values have kv_heads heads, and not all."
    yield right - (queries + keys) * m.head_norms, "If m.head_norms, their inputs are kept, too."
    yield right - 2 * keys, "Keys and values are kept, too: both are needed for the other's gradient."
    gated = "A gated feed-forward keeps four tensors of its inner width, the other one two."
    yield right - 2 * inner * m.gated, gated
    yield right // n, "That is how many numbers are kept. Their bytes are wanted."
    scores = tokens * sequence * m.heads * n
    yield right - rows + scores, "Fused attention does not keep the scores: one number a row alone."


STEPS = [  # of which the loss is the fullest moment, and so the most that torch holds
    (replace(GPT, vocabulary=2600), 2, 64, "bf16", 0),  # else one layer is as large as a third of its loss
    (LLAMA, 1, 96, "bf16", 1),
    (LLAMA, 1, 96, "fp32", 3),
    (QWEN, 2, 48, "bf16", 2),
]


@function(STEPS, tolerance=0.01)  # the angles of rotary positions, which all layers share, are left out, too
def step_bytes(m: Model, batch: int, sequence: int, dtype: str, recomputed: int) -> Answers:
    """A reader's step_bytes(m, batch, sequence, dtype, recomputed): what a step adds to the state at the loss."""
    right = by_torch.step_bytes(m, batch, sequence, dtype, recomputed)
    logits = batch * sequence * m.vocabulary
    inputs, layer = batch * sequence * m.width * BYTES[dtype], by_torch.layer_bytes(m, batch, sequence, dtype)
    without_loss = right - LOGIT_BYTES * logits
    yield right, "As three models hold it at the loss, with none, some and all layers recomputed."
    yield without_loss, "The loss holds three fp32 tensors of the logits' shape: 12 bytes a logit."
    yield without_loss + 4 * logits, "The loss holds three tensors of the logits' shape, and not one."
    yield without_loss + 8 * logits, "The loss holds three tensors of the logits' shape, and not two."
    yield without_loss + BYTES[dtype] * logits, "The loss holds 12 bytes a logit: LOGIT_BYTES."
    yield right + recomputed * (layer - inputs), "A recomputed layer keeps its input alone."
    yield right - recomputed * inputs, "A recomputed layer still keeps its input."
    yield right - 2 * inputs, "The last normalisation keeps its input and its result, too."
    yield right - (m.layers - 1 - recomputed) * layer, "All layers keep theirs until the way back."


@function([(GPT, 3, 32, 0), (GPT, 3, 32, 2), (LLAMA, 1, 64, 1), (QWEN, 3, 16, 2)])
def step_flops(m: Model, batch: int, sequence: int, recomputed: int) -> Answers:
    """A reader's step_flops(m, batch, sequence, recomputed): forward, backward, some layers forward once more."""
    plain, again = (by_torch.step(m, batch, sequence, layers).flops for layers in (0, recomputed))
    right, forward, last = again.total, plain["forward"], 2 * batch * sequence * m.inner * m.width
    yield right, "As torch counts three models, with none, some and all layers recomputed."
    yield right + recomputed * last, "Recomputing stops early: a layer's last product is not needed again."
    yield plain.total, "A recomputed layer runs forward once more."
    yield 3 * forward + recomputed * forward, "One layer runs forward again, and not the whole model."
    a_share = recomputed * (forward // m.layers - last)
    yield 3 * forward + a_share, "The output's product is no part of a layer: it is not recomputed."
    yield 2 * forward + right - plain.total, "The backward pass takes twice the forward pass: 3 in all."


@function([(60.0, 11_128.0), (10.0, 86_400.0), (300.0, 3_600.0)], tolerance=1e-3)
def interval(save_s: Number, failure_s: Number) -> Answers:
    """A reader's interval(save_s, failure_s): the time between two saves at which the lost share is least."""
    tried = (10 * 1.0002**n for n in range(60_000))
    right = min(tried, key=lambda every_s: save_s / every_s + every_s / (2 * failure_s))
    yield right, "There C / τ and τ / 2M are equal: τ = √(2CM)."
    yield right / math.sqrt(2), "The loss of a failure is half of τ: C / τ = τ / 2M gives √(2CM)."
    yield right**2, "Take the square root: τ² = 2CM."
    yield right / 2, "From C / τ = τ / 2M follows τ² = 2CM, and not CM / 2."
    yield right / 60, "That is in minutes. Seconds are wanted."


@function(
    [(1_155.0, 60.0, 11_128.0, 300.0), (600.0, 10.0, 86_400.0, 0.0), (1e3, 300.0, 3_600.0, 120.0)],
    tolerance=1e-9,
)
def lost_share(interval_s: Number, save_s: Number, failure_s: Number, restart_s: Number) -> Answers:
    """A reader's lost_share(interval_s, save_s, failure_s, restart_s): of the time, to saves, failures, restarts."""
    saves, failures, restarts = save_s / interval_s, interval_s / 2 / failure_s, restart_s / failure_s
    yield saves + failures + restarts, "A save of every τ, half of τ at each failure, and a restart each."
    yield saves + failures, "Each failure also costs a restart: one in M seconds."
    yield saves + 2 * failures + restarts, "On average a failure throws half of τ away."
    yield saves + restarts, "What was done since the last save is lost, too."
    yield failures + restarts, "Saving takes its time, too: C of every τ."
