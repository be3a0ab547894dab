"""Batches against their file, steps against torch's helpers, a stopped run against a whole one."""

import random
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_utils.chapters.checkpointing import long_run
from course_utils.subjects import training

untimed = settings(deadline=None, max_examples=25)
TOKENS = training.encoded(training.example_text(300))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tokens.bin"
    training.write_tokens(path, TOKENS)
    return path


# Tokens.


def test_the_example_text_is_made_of_true_sums_and_the_same_each_time():
    text = training.example_text(50)
    for sentence in text.removesuffix(". ").split(". "):
        a, _and, b, _make, total = sentence.split()
        assert int(a) + int(b) == int(total)
    assert text == training.example_text(50) != training.example_text(50, seed=1)
    assert max(training.encoded(text)) < training.VOCABULARY


@untimed
@given(st.text(st.characters(max_codepoint=127)))
def test_decoding_is_encoding_backwards(text):
    assert training.decoded(training.encoded(text)) == text


def test_a_token_takes_two_bytes_and_the_file_holds_nothing_else(file):
    assert file.read_bytes() == b"".join(int(token).to_bytes(2, sys.byteorder) for token in TOKENS)
    tokens = training.open_tokens(file)
    assert isinstance(tokens, np.memmap)
    assert np.array_equal(tokens, TOKENS)
    with pytest.raises(ValueError, match="read-only"):
        tokens[0] = 1
    training.write_tokens(file, np.array([0, 65_535]))
    assert training.open_tokens(file).tolist() == [0, 65_535]


@untimed
@given(st.integers(2, 12), st.integers(1, 11), st.integers(1, 4))
def test_targets_are_the_next_tokens_and_every_window_can_come_the_last_token_included(
    n, sequence, batch
):
    tokens = np.arange(n, dtype=np.uint16)
    if sequence >= n:
        with pytest.raises(ValueError, match=rf"needs {sequence + 1}; there are {n}\.$"):
            training.token_batch(tokens, batch, sequence, torch.Generator())
        return
    seen = set()
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        inputs, targets = training.token_batch(tokens, batch, sequence, generator)
        assert inputs.shape == targets.shape == (batch, sequence)
        assert targets.dtype == torch.int64
        for row, target in zip(inputs.tolist(), targets.tolist(), strict=True):
            assert row == list(range(row[0], row[0] + sequence))
            assert target == [token + 1 for token in row]
            seen.add(row[0])
    assert seen == set(range(n - sequence))
    assert max(seen) + sequence == n - 1


def test_a_batch_moves_its_own_generator_and_no_other():
    before = draws()
    training.seed_all(0)  # as each test begins
    generators = [torch.Generator().manual_seed(1) for _ in range(2)]
    first, _ = training.token_batch(TOKENS, 4, 8, generators[0])
    again, _ = training.token_batch(TOKENS, 4, 8, generators[1])
    following, _ = training.token_batch(TOKENS, 4, 8, generators[0])
    assert torch.equal(first, again)
    assert not torch.equal(first, following)
    assert draws() == before


@pytest.mark.parametrize("content", [b"", b"odd"])
def test_a_file_that_cannot_hold_tokens_raises_a_sentence(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=rf"2 bytes for each; .*file has {len(content)} bytes\.$"):
        training.open_tokens(tmp_path / "file")


# Randomness.


def draws():
    """Uniform and normal numbers. Generators draw two normal numbers and keep one for later."""
    normals = [random.gauss(0, 1), np.random.randn(), torch.randn(1).item()]
    uniform = [random.random(), np.random.rand(), torch.rand(3).tolist()]
    return normals + uniform


def test_one_seed_repeats_all_three_shared_generators_and_they_go_on_from_where_they_stood():
    training.seed_all(3)
    first = draws()
    states = training.shared_states()
    second = draws()
    training.seed_all(3)
    assert draws() == first
    training.restore_shared_states(states)
    assert draws() == second
    training.seed_all(4)
    assert not any(a == b for a, b in zip(draws(), first, strict=True))


OF_EACH_USE = {
    ("model", 0): 4_333_881_167_196_184,
    ("batches", 0): 24_392_028_595_790_092,
    ("model", 1): 64_850_844_241_136_094,
}


def test_each_use_and_each_seed_has_numbers_of_its_own_and_the_same_in_every_process():
    seeds = {use: training.generator_for(*use).initial_seed() for use in OF_EACH_USE}
    assert seeds == OF_EACH_USE


# One step.


@untimed
@given(st.floats(1e-4, 1), st.integers(0, 5), st.integers(1, 10), st.floats(0, 1e-4))
def test_the_schedule_is_torchs_line_and_half_cosine(peak, warmup, rest, floor):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=peak)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, rest, eta_min=floor)
    total = warmup + rest
    ours = [training.warmup_cosine(step, peak, warmup, total, floor=floor) for step in range(30)]
    assert ours[:warmup] == pytest.approx([peak * n / warmup for n in range(1, warmup + 1)])
    for rate in ours[warmup : total + 1]:
        assert rate == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-6, abs=1e-9)
        optimizer.step()
        cosine.step()
    assert all(rate == pytest.approx(floor) for rate in ours[total:])


@untimed
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5))
def test_the_loss_is_the_mean_surprise_at_each_target(batch, sequence, vocabulary):
    logits = torch.randn(batch, sequence, vocabulary)
    targets = torch.randint(vocabulary, (batch, sequence))
    shares = logits.exp() / logits.exp().sum(-1, keepdim=True)
    surprises = []
    for b in range(batch):
        for s in range(sequence):
            surprises.append(-shares[b, s, targets[b, s]].log().item())
    mean = sum(surprises) / len(surprises)
    assert training.next_token_loss(logits, targets).item() == pytest.approx(mean, abs=1e-5)
    assert training.next_token_loss(logits.bfloat16(), targets).dtype == torch.float32


# A run.


def new_run(seed=0, *, dropout=0.1, max_norm=0.5, **options):
    """With dropout, which draws from torch's shared generator, and a schedule."""
    return replace(long_run.new_run(seed, dropout), max_norm=max_norm, **options)


def weights(run):
    return [p.detach().clone() for p in run.model.parameters()]


def test_a_run_steps_as_a_plain_loop_with_torchs_helpers_does_and_learns():
    run = new_run(dropout=0.0)
    other = new_run(dropout=0.0)
    losses = list(run.losses(40))
    for step, loss in enumerate(losses[:6]):
        inputs, targets = training.token_batch(
            other.tokens, other.batch, other.sequence, other.generator
        )
        expected = nn.functional.cross_entropy(other.model(inputs).flatten(0, 1), targets.flatten())
        assert loss == expected.item()
        other.optimizer.zero_grad()
        expected.backward()
        nn.utils.clip_grad_norm_(other.model.parameters(), 0.5)
        other.optimizer.param_groups[0]["lr"] = long_run.learning_rate(step)
        other.optimizer.step()
    assert sum(losses[-5:]) < 0.7 * sum(losses[:5])


def test_without_a_schedule_or_a_norm_the_optimizer_is_left_alone():
    run = new_run(schedule=None, max_norm=None)
    run.advance()
    assert run.optimizer.param_groups[0]["lr"] == long_run.PEAK_RATE
    gradients = torch.cat([p.grad.flatten() for p in run.model.parameters()])
    assert gradients.norm() > 0.5  # which clipping would have shortened


@pytest.mark.parametrize("stop", [0, 5])
def test_a_run_that_stops_anywhere_goes_on_bit_for_bit_with_its_tokens_in_a_file(file, stop):
    whole = new_run(tokens=TOKENS)
    expected = list(whole.losses(8))
    first = new_run(tokens=TOKENS)
    losses = list(first.losses(stop))
    state = first.state()
    # Neither what the first run does afterwards may show in the state, nor what a second one does
    # that goes on from it.
    list(first.losses(10))
    for _ in range(2):
        second = new_run(seed=7, tokens=training.open_tokens(file))
        second.restore(state)
        assert losses + list(second.losses(8)) == expected
        assert all(map(torch.equal, weights(second), weights(whole)))
