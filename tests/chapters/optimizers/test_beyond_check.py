"""What the exercises beyond the main path call right is what torch and the course's loop do."""

import pytest
import torch

from course_utils.chapters.optimizers import beyond_check, check
from course_utils.subjects import training


def right(exercise, *case):
    """The answer that the exercise lists first."""
    answer, _ = next(exercise.__wrapped__(*case))
    return answer


@pytest.mark.parametrize("state", check.ADAGRAD_STATES)
def test_a_step_of_adagrad_is_torchs(state):
    p, g, v, lr = state
    parameter = torch.nn.Parameter(p.clone())
    parameter.grad = g.clone()
    optimizer = torch.optim.Adagrad([parameter], lr, eps=1e-8)
    optimizer.state[parameter]["sum"] = v.clone()
    optimizer.step()
    new_p, new_v = right(check.adagrad, *state)
    assert torch.allclose(new_p, parameter, rtol=1e-12)
    assert torch.allclose(new_v, optimizer.state[parameter]["sum"], rtol=1e-12)


def test_gradients_are_clipped_as_torch_clips_them():
    for gradients, max_norm in beyond_check.TO_CLIP + beyond_check.LEFT_AS_THEY_ARE:
        parameters = [torch.nn.Parameter(torch.zeros(len(gradient))) for gradient in gradients]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = torch.tensor(gradient)
        training.clip_gradients(parameters, max_norm)
        ours = right(beyond_check.clipped, gradients, max_norm)
        for parameter, gradient in zip(parameters, ours, strict=True):
            assert torch.allclose(parameter.grad, torch.tensor(gradient, dtype=torch.float32))


@pytest.mark.parametrize("case", beyond_check.FILES)
def test_the_windows_are_those_that_the_courses_loader_draws(case):
    tokens, sequence = case
    tokens_in_file = training.encoded("".join(map(chr, tokens)))
    draw = training.generator_for("batches", seed=0)
    inputs, targets = training.token_batch(tokens_in_file, 500, sequence, draw)
    drawn = {(tuple(x), tuple(y)) for x, y in zip(inputs.tolist(), targets.tolist(), strict=True)}
    pairs = right(beyond_check.token_windows, tokens, sequence)
    assert {(tuple(window), tuple(later)) for window, later in pairs} == drawn
    assert len(pairs) == len(drawn)


@pytest.mark.parametrize(("peak", "warmup", "total"), [(1.0, 3, 12), (3e-4, 20, 100)])
def test_the_rates_are_those_of_the_courses_schedule(peak, warmup, total):
    for step in range(total):
        by_the_course = training.warmup_cosine(step, peak, warmup, total)
        ours = right(beyond_check.rate_of_step, step, peak, warmup, total)
        assert ours == pytest.approx(by_the_course, rel=1e-9)
