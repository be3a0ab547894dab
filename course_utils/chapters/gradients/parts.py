"""The parts whose sums are the counts of notebook 5.

If a reader's sum is wrong, the check can name the parts that are missing or wrong.
"""

from collections.abc import Sequence
from itertools import pairwise

from course_utils.core.accountant import BYTES, Model


def of_step_flops(batch: int, widths: Sequence[int]) -> dict[str, int]:
    """Return the FLOPs of each part of a step of an MLP.

    The data need no gradient, so the first layer has no product for that of its input.
    """
    layers = [2 * batch * inputs * outputs for inputs, outputs in pairwise(widths)]
    return {
        "forward pass": sum(layers),
        "gradients of the weights": sum(layers),
        "gradients of the layers' inputs": sum(layers[1:]),
    }


def of_layer_bytes(m: Model, batch: int, sequence: int, dtype: str) -> dict[str, int]:
    """Return the bytes that autograd keeps of one layer by part, without LayerNorm's statistics."""
    tokens = batch * sequence
    of_a_number = tokens * BYTES[dtype]
    queries = m.heads * m.head_width * of_a_number
    keys = m.kv_heads * m.head_width * of_a_number
    # Of a gated feed-forward four tensors of the inner width are kept, of another one two.
    inside = (4 if m.gated else 2) * m.inner * of_a_number
    return {
        "normalisations": 4 * m.width * of_a_number,
        "queries": queries,
        "keys and values": 2 * keys,
        "attention's result": queries,
        "head norms' inputs": queries + keys if m.head_norms else 0,
        "feed-forward": inside,
        "row sums": tokens * m.heads * BYTES["fp32"],
    }
