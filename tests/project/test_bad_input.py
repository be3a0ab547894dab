"""Wrong input gets a sentence that says what was wrong and what is allowed, never a number."""

import math

import numpy as np
import pytest
import torch

from course_utils.chapters.checkpointing import long_run
from course_utils.chapters.optimizers import by_hand
from course_utils.core import floats, layout, measure, predict
from course_utils.core.datasheets import MACHINES
from course_utils.core.say import Choice, Comparison, Ledger
from course_utils.subjects import models, reported, training
from course_utils.subjects.child_processes.products import matmul_call
from course_utils.subjects.training.precision import gradients, losses, lost

H100 = MACHINES["H100 SXM"]
LLAMA = predict.MODELS["Llama 3 8B"]
SHAPE = predict.Transformer(2, 8, 2, 11, 4)

# Each entry is a call with wrong input, and words of the sentence that it has to raise.
OF_NUMBERS = [
    (lambda: floats.encode(1.0, "fp8"), "no number format 'fp8' here. There are: fp64, fp32, tf32"),
    (lambda: floats.decode(2**16, "fp16"), "integer of 16 bits, from 0 to 65535; got 65536"),
    (lambda: floats.decode(-1, "e2m1"), "integer of 4 bits, from 0 to 15; got -1"),
    (lambda: floats.decode(1.0, "e2m1"), "integer of 4 bits"),
    (lambda: floats.encode(math.nan, "e2m1"), "e2m1 has no NaN"),
    (lambda: floats.encode("0.1", "fp16"), "Only a plain number can be encoded, not str"),
    (
        lambda: floats.encode(torch.zeros(2), "fp16"),
        "not Tensor; of a tensor's element, take .item()",
    ),
    (lambda: floats.spacing(math.inf, "fp16"), "numbers have no spacing"),
    (lambda: measure.every_value("fp32"), "'fp32' is not among the formats of up to 19 bits: tf32"),
    (lambda: Comparison({"a": 1}, {"b": 1}), "these stand on one side alone: a, b"),
    (lambda: Comparison(Ledger({"a": 1}, "bytes"), Ledger({"a": 1}, "FLOPs")), "FLOPs with bytes"),
    (lambda: Comparison({}, {}), "at least one item"),
    (lambda: Comparison(Ledger({"a": 1}, "s"), {"a": 1}, "bytes"), "not bytes with s."),
    (lambda: Choice("which", among=("a", "b"), measured="c"), "'c' is none of a and b."),
]
OF_SHAPES = [
    (
        lambda: layout.address(torch.ones(2, 3), (2, 0)),
        "an index for each dimension, below its size; got (2, 0)",
    ),
    (lambda: layout.address(torch.ones(2, 3), (1,)), "below its size; got (1,)"),
    (
        lambda: layout.can_view((2, 3), (3,), (6,)),
        "A shape has a stride for each dimension; got (2, 3)",
    ),
    (
        lambda: layout.can_view((2, -3), (3, 1), (6,)),
        "A shape is made of whole numbers from 0 up; got",
    ),
    (lambda: layout.can_view((2, 3), (-3, 1), (6,)), "A stride is made of whole numbers from 0 up"),
    (lambda: layout.can_view((2,), (1,), (-1,)), "A new shape is made of whole numbers from 0 up"),
    (
        lambda: predict.tensor_bytes((4, -1), "bf16"),
        "size 1 is a size, a whole number from 0 up; got -1",
    ),
    (lambda: predict.tensor_bytes((4,), "bf17"), "no dtype 'bf17' here. There are: fp64, fp32"),
    (lambda: predict.matmul_flops(2, -3, 4), "d is a size, a whole number from 0 up; got -3"),
    (lambda: predict.einsum_flops("b d, d k", b=1, d=1, k=1), "the -> is missing"),
    (lambda: predict.einsum_flops("b d -> b", b=1, k=1), "needs the sizes of b, d; got b, k."),
    (lambda: predict.einsum_flops("b -> b"), "needs the sizes of b; got none."),
    (lambda: predict.einsum_flops("b -> b", b=-1), "b is a size, a whole number"),
]
OF_MODELS = [
    (
        lambda: models.Transformer(SHAPE)(torch.arange(5)[None]),
        "built for 4 positions; got 5 tokens.",
    ),
    (
        lambda: models.MLP([1, 2], nonlinearity="elu"),
        "'elu' is no nonlinearity here. There are: relu, tanh",
    ),
    (lambda: models.recomputed([], torch.ones(1, 8), -1), "A segment is a number of blocks, or 0"),
    (
        lambda: predict.mlp_flops(4, [8]),
        "at least two widths, its input's and its output's; got [8]",
    ),
    (lambda: predict.Transformer(1, 10, 3, 5, 4), "multiple of the heads; 10 is not one of 3"),
    (lambda: predict.Transformer(-1, 10, 2, 5, 4), "layers is a size"),
    (lambda: predict.Transformer(1, 12, 6, 5, 4, kv_heads=4), "keys and values; 6 is not one of 4"),
    (lambda: predict.Transformer(1, 12, 4, 5, 4, rotary=True), "has to be even; 12 / 4 = 3 is not"),
    (
        lambda: SHAPE.activation_bytes(1, 2, dtype="e4m3"),
        "computes in fp64, fp32, fp16, bf16; got 'e4m3'",
    ),
    (lambda: predict.timeline(LLAMA, 1, 8, pieces=0), "got segment 1, pieces 0."),
    (
        lambda: predict.timeline(LLAMA, 1, 8, fused_loss=True, pieces=2),
        "fused or in pieces, not both",
    ),
    (lambda: predict.timeline(LLAMA, 1, 8, stage=4), "ZeRO has the stages 0"),
]
OF_MACHINES = [
    (
        lambda: measure.time_call(print, at_most_s=0),
        "needs some time: at_most_s must be above 0, not 0",
    ),
    (
        lambda: measure.time_call(print, at_most_s=math.nan),
        "needs some time: at_most_s must be above 0, not nan",
    ),
    (
        lambda: matmul_call(1, 1, 1, "int8"),
        "No product in 'int8' here. There are: fp64, fp32, tf32, bf16",
    ),
    (lambda: matmul_call(1, 1, 1, "tf32"), "NVIDIA's tensor cores multiply; this device has none."),
    (
        lambda: matmul_call(16, 16, 16, "fp8"),
        "no units for NVIDIA's fp8; an H100, an L4 or an RTX 4090 has.",
    ),
    (lambda: matmul_call(1, 1, 1, "fp64", "mps"), "Apple's GPUs have no fp64."),
    (lambda: predict.mfu(1, 0, H100), "A rate needs a time above 0; got 0 seconds"),
    (lambda: predict.mfu(1, 1, H100, True), "count is a size, a whole number"),
    (lambda: predict.ridge(H100, "fp4"), "No dense peak for 'fp4' on H100 SXM. There are: fp64"),
    (
        lambda: predict.product_seconds(1, 1, 1, H100, "bf16", -1, 1),
        "price in seconds, 0 or more, such as",
    ),
    (
        lambda: predict.product_seconds(1, 1, 1, H100, "bf16", 5e-6, 78),
        "e is a share, above 0 and at most 1",
    ),
    (lambda: predict.largest_model(H100, 0, "fp32 sgd"), "at least one machine; got count 0"),
    (
        lambda: predict.training_days(1, 1, H100, 1, 50),
        "MFU is a share, above 0 and at most 1; got 50",
    ),
    (
        lambda: predict.days_by_part(
            LLAMA, 1, H100, 1, products=(0.7, 79), attention=(0.3, 0.7), step_mfu=0.4, running=1
        ),
        "What is reached is a share, above 0 and at most 1; got 79.",
    ),
    (
        lambda: predict.training_bytes(-1, "fp32 sgd"),
        "The number of parameters is 0 or more; got -1",
    ),
    (lambda: predict.training_bytes(math.inf, "fp32 adamw"), "0 or more; got inf"),
    (
        lambda: predict.training_bytes(1, "fp8 sgd"),
        "no recipe 'fp8 sgd' here. There are: fp32 sgd; ",
    ),
    (lambda: predict.training_bytes(1, "fp32 sgd", stage=4), "stages 0 (nothing is split) to 3"),
    (lambda: predict.wasted_share(1, -1, 10), "A time is 0 s or more"),
]
OF_TRAINING = [
    (lambda: reported.run_named("GPT-9"), "Of the published runs 0 begin with 'GPT-9'"),
    (
        lambda: reported.mfu(reported.run_named("Llama 3 8B, whole")),
        "reports no mfu_percent, but gpu_hours",
    ),
    (
        lambda: reported.memory(reported.run_named("torchtitan 70B 256 × H100 2D, fp8")),
        "the model is split",
    ),
    (
        lambda: reported.run_named("Megatron 2021 1.7B").mfu_by_convention,
        "does not say how many tokens",
    ),
    (
        lambda: predict.timeline(predict.MODELS["GPT-2 small"], 1, 8, recompute="most"),
        "every other layer",
    ),
    (lambda: predict.timeline(predict.MODELS["GPT-2 small"], 1, 8, fused_loss="no"), "with output"),
    (
        lambda: predict.MODELS["GPT-2 small"].training_flops(1, 8, "every other layer"),
        "every layer is recomputed or none",
    ),
    (lambda: training.warmup_cosine(-3, 1, 4, 8), "Steps are counted from 0; got -3"),
    (lambda: training.warmup_cosine(0, 1.0, 8, 8), "ends before the run does; got 8 of 8 steps"),
    (
        lambda: training.token_batch(np.arange(9), 2, 0, torch.Generator()),
        "one token or more; got 2 of 0",
    ),
    (lambda: training.token_batch(np.arange(9), 0, 2, torch.Generator()), "got 0 of 2"),
    (lambda: training.write_tokens("no file", np.array([1.5])), "numbers; got an array of float64"),
    (
        lambda: training.write_tokens("", np.array([70_000])),
        "A token is 0 to 65,535 here; got 70000",
    ),
    (lambda: training.write_tokens("", np.array([-1])), "A token is 0 to 65,535 here; got -1"),
    (lambda: training.encoded("a → b"), "Only ASCII characters are tokens here; got '→'"),
    (lambda: training.clip_gradients([], -1.0), "The largest norm is above 0; got -1.0"),
    (lambda: long_run.new_run().restore({}), "lacks model, optimizer, step, data, generators"),
    (
        lambda: long_run.new_run().restore({}, without=["modle"]),
        "no part 'modle'. Its parts are: model, ",
    ),
    (
        lambda: by_hand.ByHand([], "Adam", max, 0.1),
        "no optimizer 'Adam' here. There are: SGD, momentum",
    ),
    (lambda: next(losses("fp8", 1)), "There is no mix 'fp8'. There are: fp32, bf16 autocast"),
    (lambda: lost(torch.ones(2), "fp16", 0), "A loss scale is a finite number above 0; got 0."),
    (lambda: lost(torch.ones(2), "fp16", math.inf), "above 0; got inf."),
    (
        lambda: gradients(mean_over=300),
        "100 pairs times a power of two: 100, 200, 400 and so on; got 300.",
    ),
    (lambda: gradients(-1), "Steps are counted from 0; got -1."),
]


@pytest.mark.parametrize(
    ("call", "sentence"), OF_NUMBERS + OF_SHAPES + OF_MODELS + OF_MACHINES + OF_TRAINING
)
def test_wrong_input_raises_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=r"^[A-Za-z'].*\.$") as caught:
        call()
    assert sentence in str(caught.value)


def test_a_ledger_says_what_it_has():
    with pytest.raises(KeyError, match="There are: weights, biases"):
        Ledger({"weights": 1, "biases": 2})["bias"]
