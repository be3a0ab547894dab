"""Batches against the file they come from, steps against torch's own helpers, and a stopped run against one that was not."""

import copy
import io
import random
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_utils import models, training

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
    assert file.stat().st_size == 2 * len(TOKENS)
    assert file.read_bytes() == b"".join(int(token).to_bytes(2, sys.byteorder) for token in TOKENS)
    assert np.array_equal(training.open_tokens(file), TOKENS)


def test_the_largest_token_survives(tmp_path):
    training.write_tokens(tmp_path / "tokens", np.array([0, 65_535]))
    assert training.open_tokens(tmp_path / "tokens").tolist() == [0, 65_535]


def test_the_file_cannot_be_written_to_through_the_array(file):
    tokens = training.open_tokens(file)
    assert isinstance(tokens, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        tokens[0] = 1


@untimed
@given(st.integers(2, 12), st.integers(1, 11), st.integers(1, 4))
def test_targets_are_the_next_tokens_and_every_window_can_come_the_last_token_included(n, sequence, batch):
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
            assert target == [token + 1 for token in row] == list(range(row[0] + 1, row[0] + 1 + sequence))
            seen.add(row[0])
    assert seen == set(range(n - sequence))
    assert max(seen) + sequence == n - 1


def test_a_batch_moves_its_own_generator_and_no_other():
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    generators = [torch.Generator().manual_seed(1) for _ in range(2)]
    first, again = (training.token_batch(TOKENS, 4, 8, generator)[0] for generator in generators)
    assert torch.equal(first, again)
    assert not torch.equal(first, training.token_batch(TOKENS, 4, 8, generators[0])[0])
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1:] == (random.getstate(), np.random.get_state()[1].tolist())


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: training.write_tokens("", np.array([70_000])), "A token is 0 to 65,535 here; got 70000"),
        (lambda: training.write_tokens("", np.array([-1])), "A token is 0 to 65,535 here; got -1"),
        (lambda: training.encoded("a → b"), "Only ASCII characters are tokens here; got '→'"),
        (lambda: training.warmup_cosine(0, 1.0, 8, 8), "ends before the run does; got 8 of 8 steps"),
        (lambda: small_run().restore({}), "lacks model, optimizer, step, data, generators"),
        (lambda: small_run().restore({}, without=["modle"]), "no part 'modle'. Its parts are: model, "),
    ],
)
def test_what_is_no_token_no_schedule_and_no_state_raises_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=r"^[A-Z].*\.$") as caught:
        call()
    assert sentence in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"odd"])
def test_a_file_that_cannot_hold_tokens_raises_a_sentence(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=rf"2 bytes for each; .*file has {len(content)} bytes\.$"):
        training.open_tokens(tmp_path / "file")


# Randomness.


def draws():
    return random.random(), np.random.rand(), torch.rand(1).item()


def test_one_seed_repeats_all_three_shared_generators():
    training.seed_all(3)
    first = draws()
    training.seed_all(3)
    assert draws() == first
    training.seed_all(4)
    assert not set(draws()) & set(first)


def test_shared_generators_go_on_from_where_they_stood():
    training.seed_all(5)
    np.random.randn(), random.gauss(0, 1)  # each of which keeps a second number for later
    states = training.shared_states()
    first = draws(), np.random.randn(), random.gauss(0, 1), torch.randn(3).tolist()
    training.restore_shared_states(states)
    assert (draws(), np.random.randn(), random.gauss(0, 1), torch.randn(3).tolist()) == first


def test_each_use_and_each_seed_has_numbers_of_its_own_and_the_same_in_every_process():
    def first(use, seed):
        return torch.rand(1, generator=training.generator_for(use, seed)).item()

    numbers = {(use, seed): first(use, seed) for use in ("model", "batches") for seed in (0, 1)}
    assert len(set(numbers.values())) == 4
    code = (
        "import torch; from course_utils import training; "
        "print(torch.rand(1, generator=training.generator_for('model', 0)).item())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) == numbers["model", 0]


# One step.


@untimed
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.floats(0.01, 100), st.booleans())
def test_clipping_is_torchs_to_the_last_bit(sizes, max_norm, one_without):
    ours = [nn.Parameter(torch.zeros(n)) for n in sizes]
    for p in ours[one_without and len(ours) > 1 :]:
        p.grad = torch.randn_like(p)
    theirs = copy.deepcopy(ours)
    for p, q in zip(ours, theirs, strict=True):
        q.grad = None if p.grad is None else p.grad.clone()
    norm = training.clip_gradients(ours, max_norm)
    assert torch.equal(norm, nn.utils.clip_grad_norm_(theirs, max_norm))
    pairs = [(p.grad, q.grad) for p, q in zip(ours, theirs, strict=True) if p.grad is not None]
    assert all(torch.equal(p, q) for p, q in pairs)
    assert torch.cat([p for p, _ in pairs]).norm() <= max(max_norm, 0) * 1.0001


@untimed
@given(st.floats(1e-4, 1), st.integers(0, 5), st.integers(1, 10), st.floats(0, 1e-4))
def test_the_schedule_is_torchs_line_and_half_cosine(peak, warmup, rest, floor):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=peak)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, rest, eta_min=floor)
    ours = [training.warmup_cosine(step, peak, warmup, warmup + rest, floor=floor) for step in range(30)]
    assert ours[:warmup] == pytest.approx([peak * n / warmup for n in range(1, warmup + 1)])
    for rate in ours[warmup : warmup + rest + 1]:
        assert rate == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-6, abs=1e-9)
        optimizer.step()
        cosine.step()
    assert ours[warmup + rest :] == pytest.approx([floor] * len(ours[warmup + rest :]))


@untimed
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5))
def test_the_loss_is_the_mean_surprise_at_each_target(batch, sequence, vocabulary):
    logits = torch.randn(batch, sequence, vocabulary)
    targets = torch.randint(vocabulary, (batch, sequence))
    shares = logits.exp() / logits.exp().sum(-1, keepdim=True)
    slow = [-shares[b, s, targets[b, s]].log() for b in range(batch) for s in range(sequence)]
    assert training.next_token_loss(logits, targets).item() == pytest.approx(
        sum(slow).item() / len(slow), abs=1e-5
    )
    assert training.next_token_loss(logits.bfloat16(), targets).dtype == torch.float32


# A run.


def small_run(seed=0, dropout=0.1, tokens=TOKENS, **options):
    model = models.Transformer(1, 16, 2, 128, 16, generator=training.generator_for("model", seed))
    model.blocks.append(Dropping(dropout))  # draws from torch's shared generator
    return training.Run(
        *(model, torch.optim.AdamW(model.parameters(), lr=0.01), tokens),
        training.generator_for("batches", seed),
        batch=4,
        sequence=8,
        **{"schedule": schedule, "max_norm": 1.0, **options},
    )


def schedule(step):
    return training.warmup_cosine(step, 0.01, 4, 20)


class Dropping(nn.Module):
    def __init__(self, share):
        super().__init__()
        self.share = share

    def forward(self, x, _turn):
        return nn.functional.dropout(x, self.share)


def weights(run):
    return [p.detach().clone() for p in run.model.parameters()]


def test_a_run_steps_as_a_plain_loop_with_torchs_helpers_does():
    run, other = small_run(dropout=0.0), small_run(dropout=0.0)
    losses = list(run.losses(6))
    for step, loss in enumerate(losses):
        inputs, targets = training.token_batch(TOKENS, 4, 8, other.generator)
        expected = nn.functional.cross_entropy(other.model(inputs).flatten(0, 1), targets.flatten())
        assert loss == expected.item()
        other.optimizer.zero_grad()
        expected.backward()
        nn.utils.clip_grad_norm_(other.model.parameters(), 1.0)
        other.optimizer.param_groups[0]["lr"] = schedule(step)
        other.optimizer.step()
    assert all(map(torch.equal, weights(run), weights(other)))


def test_without_a_schedule_or_a_norm_the_optimizer_is_left_alone():
    run = small_run(schedule=None, max_norm=None)
    run.advance()
    assert run.optimizer.param_groups[0]["lr"] == 0.01
    gradients = torch.cat([p.grad.flatten() for p in run.model.parameters()])
    assert gradients.norm() > 1  # which clipping would have shortened


def through_a_file(state):
    """As a reader that runs no code gives it back."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 9))
def test_a_run_that_stops_anywhere_goes_on_bit_for_bit(stop):
    training.seed_all(1)
    whole = small_run()
    expected = list(whole.losses(10))
    training.seed_all(1)
    first = small_run()
    losses = list(first.losses(stop))
    state = through_a_file(first.state())
    list(first.losses(12))  # what the first does afterwards must not show in the state
    training.seed_all(2)
    second = small_run(seed=7)
    second.restore(state)
    assert losses + list(second.losses(10)) == expected
    assert all(map(torch.equal, weights(second), weights(whole)))


@pytest.mark.parametrize("part", training.PARTS)
def test_without_any_one_part_a_resumed_run_is_another(part):
    def resumed(without):
        training.seed_all(2)
        second = small_run(seed=7)
        second.restore(state, without=without)
        list(second.losses(10))
        return weights(second)

    training.seed_all(1)
    whole = small_run()
    list(whole.losses(5))
    state = whole.state()
    list(whole.losses(10))
    for _ in range(2):  # the state is not used up
        assert all(map(torch.equal, resumed(()), weights(whole)))
    assert not all(map(torch.equal, resumed([part]), weights(whole)))


PART_OF_A_RUN = """
import pathlib, sys, torch
from course_utils import models, training

state, tokens, until = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
model = models.Transformer(1, 16, 2, 128, 16, generator=training.generator_for("model", 0))
run = training.Run(
    *(model, torch.optim.AdamW(model.parameters(), lr=0.01), training.open_tokens(tokens)),
    training.generator_for("batches", 0),
    schedule=lambda step: training.warmup_cosine(step, 0.01, 4, 20),
    batch=4, sequence=8, max_norm=1.0,
)
if state.exists():
    run.restore(torch.load(state, weights_only=True))
print([loss.hex() for loss in run.losses(until)])
torch.save(run.state(), state)
"""


def test_another_process_goes_on_bit_for_bit_where_the_first_was_left(tmp_path, file):
    losses = []
    for until in ("3", "6"):
        command = [sys.executable, "-c", PART_OF_A_RUN, str(tmp_path / "state"), str(file), until]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        losses += re.findall(r"'(.*?)'", run.stdout)
    whole = small_run(dropout=0.0)
    assert losses == [loss.hex() for loss in whole.losses(6)]
    resumed = torch.load(tmp_path / "state", weights_only=True)["model"]
    assert all(torch.equal(tensor, resumed[key]) for key, tensor in whole.model.state_dict().items())


def test_a_small_gpt_learns_the_example_text():
    training.seed_all(0)
    run = small_run(dropout=0.0)
    losses = list(run.losses(60))
    assert sum(losses[-5:]) < 0.7 * sum(losses[:5])
