"""What we measured on an H100 and an H200, beside what the course predicts."""

import pytest

from course_utils.core import accountant, predict
from course_utils.core.datasheets import MACHINES
from course_utils.subjects.machines import by_us, recordings
from tests.tools import gpu_results

TOKENS = 4 * 2048
ROW_FACTORS = 4 * TOKENS  # bytes: torch's RMSNorm on a GPU keeps an fp32 number for each token
GENERATOR = 16  # bytes: its attention keeps a seed and an offset for random numbers


# What a kernel needs while it runs, beyond what is predicted.
WORKSPACE = {
    "scaled_dot_product_attention_backward": 135_266_576,
    "embedding_dense_backward": 74_217_896,
}


def predicted_step(recompute):
    options = {"recipe": "bf16 adamw", "recompute": recompute}
    return predict.timeline(by_us.billion(), 4, 2048, **options)


def predicted_moments(recompute):
    """The operations before the update, with the bytes beyond what is held between two steps."""
    step = predicted_step(recompute)
    state = step.state["parameters"] + step.state["optimizer"]
    for operation in step.operations:
        if operation.phase != "optimizer":
            yield operation, operation.during.total - state, operation.after.total - state


@pytest.mark.parametrize(("recompute", "count"), [(False, 1129), (True, 1545)])
def test_on_an_h100_the_same_operations_run_and_hold_the_predicted_bytes(recompute, count):
    """What is more is what torch's kernels for GPUs keep: numbers of norms, generators' states.

    While they run, two of them also have scratch memory.
    """
    measured = by_us.h100_moments(recompute)
    predicted = list(predicted_moments(recompute))
    assert len(measured) == len(predicted) == count
    norms = 0  # of which the forward pass keeps the factors
    for seen, (operation, during, after) in zip(measured, predicted, strict=True):
        assert seen.name == operation.name
        more = seen.after - after
        more_during = seen.during - during
        assert more_during >= 0
        assert more_during - more <= WORKSPACE.get(seen.name, ROW_FACTORS)
        generators, loss = divmod(more % ROW_FACTORS, GENERATOR)
        assert generators <= by_us.billion().layers, operation
        assert loss in (0, 4), operation  # one number, which the test on the GPU still had
        norms = max(norms, more // ROW_FACTORS)
    # With each layer recomputed, the two of one layer are the most that are kept at once.
    assert norms == (2 if recompute else 33)


@pytest.mark.parametrize(("name", "recompute"), [("step", False), ("recomputed", True)])
def test_a_steps_peak_on_both_gpus_is_predicted_to_a_ten_thousandth(name, recompute):
    step = predicted_step(recompute)
    predicted = step.peak - step.state["parameters"] - step.state["optimizer"]
    for gpu in by_us.GPUS:
        assert by_us.measured(gpu)[name]["peak_bytes"] == pytest.approx(predicted, rel=1e-4)
    largest = max(moment.during for moment in by_us.h100_moments(recompute))
    assert largest == pytest.approx(by_us.measured("H100 SXM")[name]["peak_bytes"], rel=1e-5)


def test_a_step_reaches_30_to_50_percent_of_the_peak_near_the_power_limit():
    shape = predict.shape_of(by_us.billion())
    flops = shape.training_flops(4, 2048).total
    for gpu in by_us.GPUS:
        found = by_us.measured(gpu)
        for name in ("step", "recomputed"):
            step = found[name]
            assert 0.3 < flops / step["seconds"] / MACHINES[gpu].peak("bf16") < 0.5
            # The mean power while steps run; both data sheets say 700 W at most.
            assert 0.95 * 700 < step["watts"] < 1.05 * 700
            assert step["joules"] / step["seconds"] == pytest.approx(step["watts"], rel=0.03)


def test_the_h200_drew_more_than_its_limit_and_the_h100_less():
    """So it is partly luck that 700 W predict the H100's energy to within one percent."""
    assert by_us.measured("H200 SXM")["step"]["watts"] > 700
    step = by_us.measured("H100 SXM")["step"]
    assert step["joules"] == pytest.approx(700 * step["seconds"], rel=0.01)


def test_the_largest_batch_that_fits_is_the_predicted_one_if_segments_can_grow():
    largest = by_us.measured("H200 SXM")["largest"]
    batch = largest["predicted_batch"]
    for tried, said in largest["expandable"].items():
        predicted = largest["state"] + said["predicted"]
        assert (predicted <= largest["free"]) == (int(tried) <= batch)
        assert said["fits"] == (int(tried) <= batch)
        if said["fits"]:
            assert said["held"] == pytest.approx(predicted, rel=1e-4)
    by_default = largest["as it is"][str(batch - 1)]
    assert not by_default["fits"]
    # What it asked for is the logits' gradient in fp32, and there was more, but in pieces.
    m = by_us.billion()
    logits = 4 * (batch - 1) * largest["sequence"] * m.vocabulary
    assert by_default["asked_gib"] == pytest.approx(logits / 2**30, abs=0.01)
    assert by_default["unallocated_gib"] > by_default["asked_gib"]
    # Its first step ran: AdamW's averages, 8 of the state's 14 bytes, were not there yet.
    first_step = by_default["predicted"] + largest["state"] * 6 / 14
    assert by_default["held"] == pytest.approx(first_step, rel=1e-3)


def test_the_mixtures_step_is_as_slow_and_as_varied_as_notebook_6_says():
    mixture = by_us.measured("H100 SXM")["mixture"]
    each_s = mixture["seconds"] / mixture["operations"]
    for name in ("H100 SXM, by OpenXLA", "H100 SXM"):  # notebook 4's c, and that of our recording
        recording = recordings()[name]
        sizes = recordings()["H100 SXM, by OpenXLA"].seconds_by_size["bf16"]
        timed = {size: recording.seconds_by_size["bf16"][size] for size in sizes}
        c, _ = predict.fitted_forecast(timed, recording.machine, "bf16")
        assert 0.19 < c / each_s < 0.26
    assert mixture["samples"] == 16
    assert 0.75 < 1 / (1 + mixture["spread"]) < 0.82  # the best took a fifth less


def test_what_transformers_keeps_more_than_we_is_explained_to_the_byte():
    found = by_us.measured("H200 SXM")["transformers"]
    m = by_us.billion()
    norms = 2 * m.layers + 1
    # Written as several operations, a norm keeps its input in fp32, and a number for each token.
    as_operations = 4 * (m.width + 1) * TOKENS
    # Cosines and sines for both halves of a head: in bf16, for each position.
    second_half = 2 * 2 * 2048 * m.head_width // 2
    more = norms * (as_operations - ROW_FACTORS) + second_half
    assert found["theirs"]["kept_bytes"] - found["ours"]["kept_bytes"] == more
    angles = 2 * (m.head_width // 2) * 2048  # they multiply positions by frequencies as matrices
    assert found["theirs"]["forward_flops"] - found["ours"]["forward_flops"] == angles


def test_decoding_is_never_faster_than_its_roof():
    for gpu in by_us.GPUS:
        decode = by_us.measured(gpu)["decode"]
        sheet = MACHINES[gpu]
        for users, seconds in decode["seconds"].items():
            roof = accountant.decode_seconds(
                by_us.billion(),
                int(users),
                decode["tokens"],
                "bf16",
                sheet.bytes_per_sec,
                sheet.peak("bf16"),
            )
            assert roof < seconds


def test_a_gpu_that_was_not_measured_is_refused():
    with pytest.raises(ValueError, match="There are: H100 SXM, H200 SXM"):
        by_us.measured("B200")


def test_of_what_the_allocator_said_the_operations_before_the_update_are_kept():
    said = [
        ["aten._fused_rms_norm", 100, 160, 140],
        ["aten.view", 140, 140, 140],
        ["aten.mm", 120, 180, 180],
        ["aten._to_copy", 150, 190, 190],
        ["aten._to_copy", 190, 230, 230],
    ]
    assert gpu_results.moments(said) == [["rms_norm", 60, 20], ["mm", 80, 50]]
