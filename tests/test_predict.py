"""Every closed form against loops that count, torch that runs it, or opt_einsum that orders it; data sheets against themselves."""

import itertools
import math

import opt_einsum
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

from course_utils import measure, predict
from course_utils.datasheets import MACHINES, machine_named

untimed = settings(deadline=None)  # no test here depends on how fast the machine is
size = st.integers(0, 6)
H100 = MACHINES["H100 SXM"]
TORCH_DTYPES = {
    **measure.DTYPES,
    **{name: getattr(torch, name) for name in ("int64", "int32", "int8", "bool")},
    "tf32": torch.float32,  # a way to multiply what is stored as fp32
    "fp8": torch.float8_e4m3fn,
}


# Bytes and FLOPs of one tensor, one product.


@untimed
@given(st.lists(size, max_size=4), st.sampled_from(list(predict.DTYPE_BYTES)))
def test_a_tensors_bytes_are_those_that_torch_takes(shape, dtype):
    assert predict.tensor_bytes(shape, dtype) == torch.empty(shape, dtype=TORCH_DTYPES[dtype]).nbytes


@untimed
@given(size, size, size)
def test_matmul_flops_are_what_three_loops_count(b, d, k):
    counted = 0
    for _ in itertools.product(range(b), range(k), range(d)):
        counted += 1  # a product
        counted += 1  # added to the sum
    assert predict.matmul_flops(b, d, k) == counted


@untimed
@given(size, size, size, st.sampled_from(["fp64", "fp32", "bf16"]))
def test_matmul_bytes_are_those_of_both_operands_and_the_result(b, d, k, dtype):
    x, w = (torch.zeros(shape, dtype=TORCH_DTYPES[dtype]) for shape in ((b, d), (d, k)))
    assert predict.matmul_bytes(b, d, k, dtype) == x.nbytes + w.nbytes + (x @ w).nbytes


# Products of several.


@st.composite
def einsums(draw, fewest=2, most=4):
    """Operands and a result as lists of names, and the sizes of the names."""
    names = st.lists(st.sampled_from("abcdef"), max_size=3, unique=True)
    sides = [draw(names) for _ in range(draw(st.integers(fewest, most)))]
    named = sorted(set().union(*sides))
    result = draw(st.lists(st.sampled_from(named), unique=True)) if named else []
    return sides, result, {name: draw(st.integers(1, 5)) for name in named}


def predicted(sides, result, sizes):
    return predict.einsum_flops(f"{', '.join(map(' '.join, sides))} -> {' '.join(result)}", **sizes)


def opt_cost(sides, result, sizes, order):
    equation = ",".join(map("".join, sides)) + "->" + "".join(result)
    shapes = [tuple(sizes[name] for name in side) for side in sides]
    return opt_einsum.contract_path(equation, *shapes, shapes=True, optimize=order)[1].opt_cost


def every_order(operands):
    """Every way to multiply in pairs, in opt_einsum's notation: a pair leaves, its product joins at the end."""
    if operands == 1:
        yield []
        return
    for pair in itertools.combinations(range(operands), 2):
        for rest in every_order(operands - 1):
            yield [pair, *rest]


@settings(untimed, max_examples=200)
@given(einsums())
@example(([["a"], ["a"], ["f", "c", "a"]], ["f", "c"], {"a": 4, "c": 1, "f": 2}))  # "optimal" says 24
def test_einsum_flops_are_opt_einsums_cost_of_the_cheapest_order(einsum):
    costs = [opt_cost(*einsum, order) for order in every_order(len(einsum[0]))]
    assert predicted(*einsum) == min(costs)
    # Its own search remembers parts by their dimensions alone and may miss that order, but never beats it.
    assert predicted(*einsum) <= opt_cost(*einsum, "optimal")


@pytest.mark.parametrize(
    ("pattern", "sizes"),
    [
        ("a b, b c, c d -> a d", (2, 30, 4, 50)),
        ("a b, b c, c d -> a d", (50, 4, 30, 2)),
        ("a b, a c, a d, b c d -> a", (7, 5, 6, 4)),
        ("a b c, b d, c d -> a", (3, 8, 9, 2)),
    ],
)
def test_opt_einsums_own_search_agrees_on_common_patterns(pattern, sizes):
    left, right = pattern.split(" -> ")
    einsum = [side.split() for side in left.split(", ")], right.split(), dict(zip("abcd", sizes, strict=True))
    assert predicted(*einsum) == opt_cost(*einsum, "optimal")


@untimed
@given(einsums(2, 2))
def test_einsum_flops_of_two_operands_are_what_a_loop_counts(einsum):
    sides, result, sizes = einsum
    counted = 0
    summed = set().union(*sides) > set(result)
    for _ in itertools.product(*(range(n) for n in sizes.values())):
        counted += 1  # the product
        counted += summed  # added to its place in the result
    assert predicted(*einsum) == counted


@untimed
@given(einsums(1, 1))
def test_one_operand_multiplies_nothing(einsum):
    assert predicted(*einsum) == 0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: predict.tensor_bytes((4, -1), "bf16"), "size 1 is a size, a whole number from 0 up; got -1"),
        (lambda: predict.tensor_bytes((4,), "bf17"), "no dtype 'bf17' here. There are: fp64, fp32"),
        (lambda: predict.matmul_flops(2, -3, 4), "d is a size, a whole number from 0 up; got -3"),
        (lambda: predict.matmul_flops(2, True, 4), "d is a size, a whole number from 0 up; got True"),
        (lambda: predict.matmul_bytes(2, 3, 4, "int4"), "no dtype 'int4'"),
        (lambda: predict.einsum_flops("b d, d k", b=1, d=1, k=1), "the -> is missing"),
        (lambda: predict.einsum_flops("b d -> b -> d", b=1, d=1), 'A pattern looks like "b d, d k -> b k"'),
        (
            lambda: predict.einsum_flops("... d -> d", d=1),
            "In “▸...◂ d -> d”, at ▸◂: here every dimension needs",
        ),
        (lambda: predict.einsum_flops("b (h d) -> b", b=1, d=1), "which is rearrange's work"),
        (lambda: predict.einsum_flops("b d -> b k", b=1, d=1), "k comes from no operand"),
        (lambda: predict.einsum_flops("b d -> b", b=1), "needs the sizes of b, d; got b."),
        (lambda: predict.einsum_flops("b -> b", b=1, d=1), "needs the sizes of b; got b, d."),
        (lambda: predict.einsum_flops("b -> b"), "needs the sizes of b; got none."),
        (lambda: predict.einsum_flops("b -> b", b=-1), "b is a size, a whole number"),
        (lambda: predict.mlp_flops(4, [8]), "at least two widths, its input's and its output's; got [8]"),
        (lambda: predict.Transformer(1, 10, 3, 5, 4), "multiple of the heads; 10 is not one of 3"),
        (lambda: predict.Transformer(1, 10, 0, 5, 4), "multiple of the heads; 10 is not one of 0"),
        (lambda: predict.Transformer(-1, 10, 2, 5, 4), "layers is a size"),
        (lambda: predict.training_days(1, 1, H100, 1, 0), "MFU is a share, above 0 and at most 1; got 0"),
        (lambda: predict.training_days(1, 1, H100, 1, 50), "MFU is a share, above 0 and at most 1; got 50"),
        (lambda: predict.training_days(1, 1, H100, 0, 0.5), "at least one machine; got count 0"),
        (lambda: predict.mfu(1, 0, H100), "needs a time above 0 on 1 machine or more; got 0 seconds"),
        (lambda: predict.ridge(H100, "fp4"), "No dense peak for 'fp4' on H100 SXM. There are: fp64"),
        (lambda: machine_named("H1000"), "There is no machine 'H1000' here. There are: T4,"),
    ],
)
def test_wrong_sizes_and_patterns_raise_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=r"^[A-Za-z'].*\.$") as caught:
        call()
    assert sentence in str(caught.value)


# Models, against torch.


@settings(untimed, max_examples=30)
@given(st.integers(1, 5), st.lists(st.integers(1, 9), min_size=2, max_size=5), st.booleans(), st.booleans())
def test_mlp_flops_are_those_that_torch_runs(batch, widths, biases, input_grad):
    network = nn.Sequential(*(nn.Linear(d, k, bias=biases) for d, k in itertools.pairwise(widths)))
    x = torch.randn(batch, widths[0], requires_grad=input_grad)
    out = []
    ledger = predict.mlp_flops(batch, widths, input_grad=input_grad)
    assert ledger["forward"] == measure.flops(lambda: out.append(network(x))).total
    assert ledger["backward"] == measure.flops(out[0].sum().backward).total


@untimed
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_6bp_misses_only_the_first_layers_input_gradient(batch, width, layers):
    total = predict.mlp_flops(batch, [width] * (layers + 1)).total
    parameters = layers * width**2
    # 1 - 1/(3L) of 6BP, in whole numbers
    assert 3 * layers * total == (3 * layers - 1) * 6 * batch * parameters
    assert predict.mlp_flops(batch, [width] * (layers + 1), input_grad=True).total == 6 * batch * parameters


class Block(nn.Module):
    def __init__(self, width, heads, inner, biases, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.norm1, self.norm2 = nn.LayerNorm(width, bias=biases), nn.LayerNorm(width, bias=biases)
        self.qkv = nn.Linear(width, 3 * width, bias=biases)
        self.out = nn.Linear(width, width, bias=biases)
        self.up, self.down = nn.Linear(width, inner, bias=biases), nn.Linear(inner, width, bias=biases)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if self.fused:
            mixed = functional.scaled_dot_product_attention(q, k, v)
        else:
            mixed = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """Everything written out, from its own sizes alone."""

    def __init__(self, t, fused=False, again=False):
        super().__init__()
        self.again = again
        self.tokens = nn.Embedding(t.vocabulary, t.width)
        self.positions = nn.Embedding(t.context, t.width) if t.learned_positions else None
        inner = t.feed_forward or 4 * t.width
        self.blocks = nn.ModuleList(Block(t.width, t.heads, inner, t.biases, fused) for _ in range(t.layers))
        self.norm = nn.LayerNorm(t.width, bias=t.biases)
        self.head = nn.Linear(t.width, t.vocabulary, bias=False)
        if t.tied_output:
            self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.again else block(x)
        return self.head(self.norm(x))


def counted_training(shape, batch, sequence, device="meta", **options):
    """FLOPs of a forward and of a backward pass, as torch's counter sees them."""
    with torch.device(device):
        network, ids = GPT(shape, **options), torch.zeros(batch, sequence, dtype=torch.int64)
    out = []
    forward = measure.flops(lambda: out.append(network(ids))).total
    return forward, measure.flops(out[0].sum().backward).total


shapes = st.builds(
    lambda layers, heads, head, vocabulary, **rest: predict.Transformer(
        layers, heads * head, heads, vocabulary, 8, **rest
    ),
    *(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 9)),
    feed_forward=st.none() | st.integers(1, 9),
    biases=st.booleans(),
    learned_positions=st.booleans(),
    tied_output=st.booleans(),
)


@settings(untimed, max_examples=25)
@given(shapes, st.integers(1, 3), st.integers(1, 8))
def test_a_transformers_parameters_and_flops_are_those_of_one_in_torch(shape, batch, sequence):
    with torch.device("meta"):
        assert shape.parameters == sum(p.numel() for p in GPT(shape).parameters())
    forward, backward = counted_training(shape, batch, sequence)
    assert shape.forward_flops(batch, sequence).total == forward
    ledger = shape.training_flops(batch, sequence)
    assert ledger == {"forward": forward, "backward": backward}


SMALL = predict.Transformer(layers=3, width=16, heads=2, vocabulary=11, context=8)


def test_fused_attention_computes_the_scores_once_more_on_the_way_back():
    plain, fused = (counted_training(SMALL, 2, 8, "cpu", fused=fused) for fused in (False, True))
    ledger = SMALL.forward_flops(2, 8)
    assert plain[0] == fused[0] == ledger.total
    # five products instead of four, where the forward pass has two
    assert plain[1] == 2 * ledger.total
    assert fused[1] == plain[1] + ledger["attention"] // 2


def test_recomputing_runs_the_layers_once_more_and_not_the_output():
    ledger = SMALL.training_flops(2, 8, recompute=True)
    with set_checkpoint_early_stop(False):  # to the end of each layer; torch would leave out its last product
        _, backward = counted_training(SMALL, 2, 8, "cpu", again=True)
    assert backward == ledger["backward"] + ledger["recompute"]


def test_gpt2_has_124_439_808_parameters():
    gpt2 = predict.Transformer(layers=12, width=768, heads=12, vocabulary=50257, context=1024)
    assert gpt2.parameters == 124_439_808
    with torch.device("meta"):
        assert sum(p.numel() for p in GPT(gpt2).parameters()) == 124_439_808


# Rates and times.


def test_70_billion_parameters_and_15_trillion_tokens_take_144_days():
    assert predict.training_flops(70e9, 15e12) == 6.3e24
    assert round(predict.training_days(70e9, 15e12, H100, 1024, 0.5), 3) == 143.927


@untimed
@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 64), st.floats(0.01, 1))
def test_mfu_is_the_share_with_which_training_took_so_long(parameters, tokens, count, share):
    seconds = predict.training_days(parameters, tokens, H100, count, share) * 86_400
    assert math.isclose(predict.mfu(6 * parameters * tokens, seconds, H100, count), share)


def test_the_ridge_of_an_h100_is_295_flops_a_byte():
    assert round(predict.ridge(H100, "bf16"), 1) == 295.4


def product_intensity(b, d, k):
    return predict.intensity(predict.matmul_flops(b, d, k), predict.matmul_bytes(b, d, k, "bf16"))


@untimed
@given(st.integers(1, 10**5))
def test_a_matrix_times_a_vector_does_less_than_a_flop_a_byte(n):
    assert product_intensity(1, n, n) == pytest.approx(n / (n + 2))


def limited_by_arithmetic(b, d, k):
    return predict.matmul_seconds(b, d, k, H100, "bf16") == predict.matmul_flops(b, d, k) / H100.peak("bf16")


def test_on_an_h100_squares_cross_the_ridge_at_887_and_layers_of_4096_at_batch_346():
    assert next(n for n in itertools.count(1) if limited_by_arithmetic(n, n, n)) == 887
    assert next(b for b in itertools.count(1) if limited_by_arithmetic(b, 4096, 4096)) == 346
    assert product_intensity(886, 886, 886) < predict.ridge(H100, "bf16") < product_intensity(887, 887, 887)


@untimed
@given(*[st.integers(1, 5000)] * 3)
def test_the_roofline_is_no_faster_than_either_limit_and_reaches_one(b, d, k):
    seconds = predict.matmul_seconds(b, d, k, H100, "bf16")
    arithmetic, memory = 2 * b * d * k / 989.5e12, 2 * (b * d + d * k + b * k) / 3.35e12
    assert seconds >= arithmetic * (1 - 1e-12)
    assert seconds >= memory * (1 - 1e-12)
    assert math.isclose(seconds, arithmetic) or math.isclose(seconds, memory)


# Data sheets.


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_every_machine_has_a_source_and_sparse_rates_are_twice_its_dense_ones(machine):
    assert machine.has_data_sheet
    assert len(machine.source) > 20
    assert set(machine.sparse_flop_per_sec) <= set(machine.peak_flop_per_sec)
    for dtype, sparse in machine.sparse_flop_per_sec.items():
        # L40S: "362.05 | 733" is how it is printed. The others differ by rounding.
        tolerance = 0.013 if (machine.name, dtype) in {("L40S", "bf16"), ("L40S", "fp16")} else 0.002
        assert sparse == pytest.approx(2 * machine.peak(dtype), rel=tolerance)
    assert machine.bytes > 10**9
    assert 10**11 < machine.bytes_per_sec < 10**13


def test_an_h100s_dense_peak_is_what_its_units_can_do():
    assert H100.peak("bf16") == 989.5e12
    multiply_adds_per_sec = 132 * 4 * 512 * 1.83e9  # multiprocessors × tensor cores × multiply-adds × clock
    assert H100.peak("bf16") == pytest.approx(2 * multiply_adds_per_sec, rel=0.001)
