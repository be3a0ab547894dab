"""GPUs that are lists: what they send while they train, and that they learn as one GPU would."""

import pytest

from course_utils.chapters.checkpointing import on_lists
from course_utils.core import accountant


def pass_round(lists, first, adds):
    """All pieces move at the same time: what is sent is copied before anything is received."""
    gpus = len(lists)
    size = len(lists[0]) // gpus
    for turn in range(gpus - 1):
        begins = [(gpu + first - turn) % gpus * size for gpu in range(gpus)]
        sent = [lists[gpu][begin : begin + size] for gpu, begin in enumerate(begins)]
        for gpu, begin in enumerate(begins):
            receiver = lists[(gpu + 1) % gpus]
            for place, number in enumerate(sent[gpu], begin):
                receiver[place] = receiver[place] + number if adds else number
    return [size * (gpus - 1)] * gpus


@pytest.mark.parametrize("gpus", [1, 2, 3, 8])
@pytest.mark.parametrize("stage", range(4))
def test_lists_learn_what_one_gpu_would_and_send_what_the_accountant_says(stage, gpus):
    weights = [list(range(24)) for _ in range(gpus)]
    of_weights, of_gradients = on_lists.sharded_step(weights, stage, pass_round)
    times = 1 - sum(range(1, gpus + 1))
    assert on_lists.joined(weights) == [times * place for place in range(24)]
    sent = 2 * of_weights + 4 * of_gradients
    assert sent == accountant.data_parallel_bytes(24, 2, 4, gpus, stage)


def test_at_stage_3_a_gpu_keeps_only_its_own_weights():
    weights = [list(range(24)) for _ in range(8)]
    on_lists.sharded_step(weights, 3, pass_round)
    assert [sum(number is not None for number in own) for own in weights] == [3] * 8


def without_gathering(lists, first, adds):
    return pass_round(lists, first, adds) if adds else [0] * len(lists)


def test_a_step_that_gathers_nothing_fails():
    weights = [list(range(24)) for _ in range(8)]
    with pytest.raises(TypeError):  # a gradient needs a weight that the GPU does not have
        on_lists.sharded_step(weights, 3, without_gathering)
    weights = [list(range(24)) for _ in range(8)]
    on_lists.sharded_step(weights, 0, without_gathering)
    with pytest.raises(ValueError, match="For weight 1, the GPUs have"):
        on_lists.joined(weights)
