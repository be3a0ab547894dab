"""Wrong input gets a sentence that says what was wrong and what is allowed, never a number."""

import math

import numpy as np
import pytest
import torch

from course_utils import floats, measure, predict, training
from course_utils.datasheets import MACHINES
from course_utils.quantities import Comparison, Ledger


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: floats.encode(1.0, "fp8"), "no number format 'fp8' here. There are: fp64, fp32, tf32"),
        (lambda: floats.decode(2**16, "fp16"), "integer of 16 bits, from 0 to 65535; got 65536"),
        (lambda: floats.decode(-1, "e2m1"), "integer of 4 bits, from 0 to 15; got -1"),
        (lambda: floats.decode(1.0, "e2m1"), "integer of 4 bits"),
        (lambda: floats.encode(math.nan, "e2m1"), "e2m1 has no NaN"),
        (lambda: floats.encode("0.1", "fp16"), "Only a plain number can be encoded, not str"),
        (lambda: floats.encode(torch.zeros(2), "fp16"), "not Tensor; of a tensor's element, take .item()"),
        (lambda: floats.spacing(math.inf, "fp16"), "numbers have no spacing"),
        (lambda: measure.every_value("fp32"), "'fp32' is not among the formats of up to 19 bits: tf32"),
        (lambda: measure.written_bits(1.0, "tf32"), "torch stores nothing in 'tf32', only in fp64"),
        (lambda: training.warmup_cosine(-3, 1, 4, 8), "Steps are counted from 0; got -3"),
        (
            lambda: training.token_batch(np.arange(9), 2, 0, torch.Generator()),
            "one token or more; got 2 of 0",
        ),
        (lambda: training.token_batch(np.arange(9), 0, 2, torch.Generator()), "got 0 of 2"),
        (lambda: training.write_tokens("no file", np.array([1.5])), "numbers; got an array of float64"),
        (lambda: training.clip_gradients([], -1.0), "The largest norm is above 0; got -1.0"),
        (lambda: predict.mfu(1, 1, MACHINES["H100 SXM"], True), "count is a size, a whole number"),
        (lambda: predict.training_bytes(math.inf, "fp32 adamw"), "0 or more; got inf"),
        (lambda: Comparison({"a": 1}, {"b": 1}), "these stand on one side alone: a, b"),
        (lambda: Comparison(Ledger({"a": 1}, "bytes"), Ledger({"a": 1}, "FLOPs")), "FLOPs with bytes"),
    ],
)
def test_wrong_input_raises_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=r"^[A-Za-z'].*\.$") as caught:
        call()
    assert sentence in str(caught.value)


def test_a_ledger_says_what_it_has():
    with pytest.raises(KeyError, match="There are: weights, biases"):
        Ledger({"weights": 1, "biases": 2})["bias"]
