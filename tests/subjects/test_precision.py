"""Mixes of formats, trained side by side; and what a format makes of gradients."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from course_utils.core import floats, predict
from course_utils.core.measure import DTYPES
from course_utils.subjects.training import precision
from course_utils.subjects.training.precision import (
    MIXES,
    Training,
    digit_pairs,
    gradients,
    losses,
    lost,
)

FORMATS = ("fp32", "bf16", "fp16", "e4m3", "e5m2")
STEPS = 200
LARGE = 1_638_400  # pairs in a batch: fp16 loses almost half of the first gradients


@pytest.fixture(scope="module")
def curves():
    """Each mix, trained on a large batch."""
    return {mix: list(losses(mix, STEPS, mean_over=LARGE)) for mix in MIXES}


def farthest(steps, others):
    """The largest ratio of two losses of the same step."""
    largest = 0
    for step, other in zip(steps, others, strict=True):
        if not math.isfinite(step.loss):
            return math.inf
        ratio = step.loss / other.loss
        largest = max(largest, ratio, 1 / ratio)
    return largest


# The task and the model.


def test_the_task_is_all_pairs_of_digits_and_their_sums():
    pairs, sums = digit_pairs()
    seen = set()
    for row, total in zip(pairs.tolist(), sums.tolist(), strict=True):
        first = row[:10].index(1)
        second = row[10:].index(1)
        assert sum(row) == 2
        assert total == first + second
        seen.add((first, second))
    assert len(seen) == 100


def by_hand(weights):
    """The loss of the whole batch, written out."""
    pairs, sums = digit_pairs()
    first, second, third = weights
    hidden = functional.gelu(functional.gelu(pairs @ first) @ second)
    return functional.cross_entropy(hidden @ third, sums)


@pytest.mark.parametrize("mean_over", [100, LARGE])
def test_a_micro_batchs_gradients_are_its_share_of_the_batch_to_the_last_bit(mean_over):
    training = Training("fp32", mean_over=mean_over)
    weights = [w.detach().clone().requires_grad_() for w in training.model.parameters()]
    alone = torch.cat([g.flatten() for g in torch.autograd.grad(by_hand(weights), weights)])
    training.backward()
    share = torch.cat([p.grad.flatten() for p in training.weights])
    assert share.equal(gradients(mean_over=mean_over))
    assert alone.equal(share * (mean_over / 100))
    assert alone.abs().max() > 0


@pytest.mark.parametrize("mix", ["fp32", "bf16 autocast", "bf16 alone"])
def test_with_eight_bits_of_exponent_the_size_of_the_batch_changes_no_bit_of_any_loss(mix):
    small = list(losses(mix, 60, mean_over=100))
    large = list(losses(mix, 60, mean_over=LARGE))
    assert small == large


def test_the_larger_the_batch_the_more_fp16_loses_and_the_farther_it_falls_behind():
    batches = (100, LARGE, 4 * LARGE)
    zero = []  # the share of the first gradients that become 0
    ends = []  # the last loss
    for pairs in batches:
        is_zero = gradients(mean_over=pairs).half() == 0
        zero.append(is_zero.double().mean().item())
        *_, last = losses("fp16 autocast", STEPS, mean_over=pairs)
        ends.append(last.loss)
    assert zero[0] < 0.01 < 0.4 < zero[1] < 0.5 < 0.9 < zero[2]
    even = math.log(19)
    assert 10 * ends[0] < 3 * ends[1] < even / 10  # 0.007, 0.05
    assert ends[2] > even  # worse than guessing: right words are pushed up, and no wrong one down


# What an untrained model's logits get.


@pytest.mark.parametrize(("vocabulary", "mean_over"), [(19, 100), (50_257, 1024), (1000, 2**20)])
def test_a_logits_gradient_is_its_probability_over_the_tokens_and_even_at_first(
    vocabulary, mean_over
):
    found = precision.logit_gradients(vocabulary, mean_over).double()
    wrong = found[found > 0]
    right = found[found < 0]
    assert len(right) == len(found) == 16
    times_even = wrong * vocabulary * mean_over
    assert 0.4 < times_even.min() < 1 < times_even.max() < 2.5  # nearly even
    for row, target in zip(found, right, strict=True):
        # The gradients of the wrong words and of the right one add up to 0.
        assert row[row > 0].sum().item() == pytest.approx(-target.item(), rel=1e-3)
        assert -target.item() == pytest.approx(1 / mean_over, rel=2 / vocabulary)


def test_where_vocabulary_times_tokens_is_far_above_2_to_the_25_fp16_keeps_the_right_words_alone():
    found = precision.logit_gradients(50_257, 2048)
    assert ((found.half() != 0) == (found < 0)).all()
    assert (found.bfloat16() != 0).all()
    assert (precision.logit_gradients(50_257, 100).half() != 0).all()


def test_in_fp32_it_is_plain_adam_on_the_undivided_loss():
    weights = [w.detach().clone().requires_grad_() for w in Training("fp32").model.parameters()]
    optimizer = torch.optim.Adam(weights, 3e-3)
    found = []
    for _ in range(20):
        loss = by_hand(weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    assert found == [step.loss for step in losses("fp32", 20)]


def test_every_mix_begins_with_the_same_numbers_and_leaves_the_shared_generator_alone():
    before = torch.get_rng_state()
    first = {mix: next(losses(mix, 1)).loss for mix in MIXES}
    assert max(first.values()) - min(first.values()) < 1e-3
    assert torch.get_rng_state().equal(before)


FORMATS_OF = {  # of the model, and of the products
    "fp32": ("fp32", "fp32"),
    "bf16 autocast": ("fp32", "bf16"),
    "fp16 autocast": ("fp32", "fp16"),
    "bf16 alone": ("bf16", "bf16"),
}


@pytest.mark.parametrize("mix", MIXES)
def test_each_part_of_a_mix_is_in_the_format_that_its_name_says(mix):
    model, cast = FORMATS_OF[mix]
    training = Training(mix)
    seen = []
    training.model.register_forward_hook(lambda module, given, out: seen.append(out.dtype))
    training.step()
    assert seen == [DTYPES[cast]]
    assert {p.dtype for p in training.weights} == {DTYPES[model]}
    assert {p.grad.dtype for p in training.weights} == {DTYPES[model]}
    averages = []
    for state in training.optimizer.state.values():
        averages += [state["exp_avg"], state["exp_avg_sq"]]
    assert {average.dtype for average in averages} == {DTYPES[model]}


# Who follows fp32.


def test_bf16_autocast_follows_fp32_at_every_step(curves):
    assert 1 < farthest(curves["bf16 autocast"], curves["fp32"]) < 1.05


def first_zero_share(mix):
    training = Training(mix, mean_over=LARGE)
    training.backward()
    is_zero = torch.cat([p.grad.flatten() == 0 for p in training.weights])
    return is_zero.double().mean().item()


def loss_ratios(curves, mix):
    """The losses over those of fp32, step by step."""
    pairs = zip(curves[mix], curves["fp32"], strict=True)
    return [step.loss / in_fp32.loss for step, in_fp32 in pairs]


def test_fp16_without_a_scale_falls_behind_and_stalls_and_a_constant_one_would_do(curves):
    ratios = loss_ratios(curves, "fp16 autocast")
    assert ratios[STEPS // 2] > 1.2
    assert ratios[-1] > 3
    assert 0.25 < first_zero_share("fp16 autocast") < 0.5
    assert first_zero_share("fp32") == 0


def test_bf16_alone_keeps_up_at_first_and_stalls_late(curves):
    ratios = loss_ratios(curves, "bf16 alone")
    assert max(ratios[: STEPS // 2]) < 1.05
    assert ratios[-1] > 1.8


# What a format makes of numbers.


def by_floats(numbers, fmt, scale):
    """Each number on its own, through the format's exact fractions."""
    sizes = [number * scale for number in numbers.tolist() if number]
    zero = sum(floats.stored(size, fmt) == 0 for size in sizes)
    beyond = sum(floats.overflows(size, fmt) for size in sizes)
    return zero, beyond


def around_the_edges(fmt):
    """The edges themselves, ties included, and what lies a hair below and above, in fp32."""
    f = floats.FORMATS[fmt]
    step = f.smallest_subnormal
    places = [step / 2, step, 1.5 * step, f.smallest_normal, f.smallest_normal - step / 2, f.max]
    places.append(f.max + floats.spacing(f.max, fmt) / 2)
    middle = torch.tensor(places, dtype=torch.float64).float()
    middle = middle[middle.isfinite()]
    above = torch.nextafter(middle, torch.tensor(math.inf))
    below = torch.nextafter(middle, torch.tensor(0.0))
    all_three = torch.cat([middle, above, below])
    all_three = all_three[all_three.isfinite()]
    return torch.cat([all_three, -all_three])


any_fp32 = st.lists(st.integers(0, 2**32 - 1), max_size=60)


@pytest.mark.parametrize("fmt", FORMATS)
@given(patterns=any_fp32, power=st.sampled_from([0, 1, 10, 31, 32]))
@settings(max_examples=25, deadline=None)
def test_any_fp32_numbers_ties_and_their_neighbours_are_predicted_exactly_at_every_scale(
    fmt, patterns, power
):
    drawn = torch.tensor(patterns, dtype=torch.int64).to(torch.int32).view(torch.float32)
    edges = around_the_edges(fmt)
    numbers = torch.cat([drawn[drawn.isfinite()], edges, edges / 2.0**power, torch.zeros(3)])
    assert lost(numbers, fmt, 2**power) == by_floats(numbers, fmt, 2**power)


def test_fp16_loses_almost_half_of_the_first_gradients_and_none_at_two_to_the_sixteen():
    shares = gradients(mean_over=LARGE)
    zero, _ = lost(shares, "fp16")
    assert 0.4 < zero / len(shares) < 0.5
    assert lost(shares, "fp16", 2**16) == (0, 0)


@pytest.mark.parametrize("fmt", [*FORMATS, "tf32", "e2m1"])
def test_an_edge_is_where_the_next_float_meets_another_fate(fmt):
    edges = predict.rounding_edges(fmt)
    f = floats.FORMATS[fmt]
    above = math.nextafter(edges.zero_to, math.inf)
    assert floats.stored(edges.zero_to, fmt) == 0
    assert floats.stored(above, fmt) == f.smallest_subnormal
    below = math.nextafter(edges.normal_from, 0)
    assert floats.stored(edges.normal_from, fmt) == f.smallest_normal
    assert floats.stored(below, fmt) < f.smallest_normal
    assert floats.overflows(edges.beyond_from, fmt)
    assert floats.stored(math.nextafter(edges.beyond_from, 0), fmt) == f.max


def test_gradients_shrink_in_training():
    assert gradients(200).abs().median() < gradients().abs().median() / 5


# What notebook 7 asks about it.


@given(st.lists(st.floats(1e-6, 1e4), min_size=1, max_size=40), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_torchs_scale_halves_at_infinity_and_doubles_after_so_many_good_steps(sizes, interval):
    scale = 2.0**16
    good_steps = 0
    expected = []
    for size in torch.tensor(sizes).tolist():  # as fp32 has them
        expected.append(scale)
        if not torch.tensor(scale * size).half().isfinite():
            scale /= 2
            good_steps = 0
            continue
        good_steps += 1
        if good_steps == interval:
            scale *= 2
            good_steps = 0
    assert precision.scales_by_torch(sizes, growth_interval=interval) == expected
