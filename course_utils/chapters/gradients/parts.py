"""The parts whose sums are the counts of notebook 5, with a function for each count.

The exercises pass these functions to their decorator as `parts`. If a reader's sum is wrong, the
verdict can then name the parts that are missing or wrong.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from course_utils.core.accountant import BYTES, Model


def of_step_flops(batch: int, widths: Sequence[int]) -> dict[str, int]:
    """Return the FLOPs of each part of a step of an MLP.

    The data need no gradient, so the first layer has no product for that of its input.
    """
    # Of one product in each layer: it takes as many forward as for either gradient.
    layers = [2 * batch * inputs * outputs for inputs, outputs in pairwise(widths)]
    return {
        "forward pass": sum(layers),
        "gradients of the weights": sum(layers),
        "gradients of the layers' inputs": sum(layers[1:]),
    }


def of_frozen_flops(batch: int, widths: Sequence[int], frozen: Collection[int]) -> dict[str, int]:
    """Return the FLOPs of each part of a step of an MLP, some of whose layers are not trained.

    A gradient goes back as far as the first layer that is trained, and into no layer before it.
    """
    layers = [2 * batch * inputs * outputs for inputs, outputs in pairwise(widths)]
    trained = [number for number in range(len(layers)) if number not in frozen]
    first_trained = min(trained, default=len(layers))
    return {
        "forward pass": sum(layers),
        "gradients of the weights": sum(layers[number] for number in trained),
        "gradients of the layers' inputs": sum(layers[first_trained + 1 :]),
    }


def of_layer_bytes(m: Model, batch: int, sequence: int, dtype: str) -> dict[str, int]:
    """Return the bytes that autograd keeps of one layer by part, without LayerNorm's statistics."""
    tokens = batch * sequence
    of_a_number = tokens * BYTES[dtype]  # the bytes of one number for each token
    queries = m.heads * m.head_width * of_a_number
    keys = m.kv_heads * m.head_width * of_a_number  # the values take as many
    head_norm_inputs = 0
    if m.head_norms:
        head_norm_inputs = queries + keys
    # Of a gated feed-forward four tensors of the inner width are kept, of another one two.
    inside = (4 if m.gated else 2) * m.inner * of_a_number
    return {
        "normalisations": 4 * m.width * of_a_number,  # of two, the input and the result
        "queries": queries,
        "keys and values": 2 * keys,
        "attention's result": queries,
        "head norms' inputs": head_norm_inputs,
        "feed-forward": inside,
        # Fused attention keeps a sum for each row of scores.
        "row sums": tokens * m.heads * BYTES["fp32"],
    }


def as_in_gpt2(m: Model, batch: int, sequence: int, dtype: str) -> Iterator[int]:
    """Yield wrong counts that take the notebook's 16 · S · H for a rule about every layer.

    They are in numbers or in bytes, of one sequence or of all, without the row sums or with them.
    """
    for tokens in (batch * sequence, sequence):
        row_sums = tokens * m.heads * BYTES["fp32"]
        for unit in (BYTES[dtype], 1):
            yield 16 * tokens * m.width * unit
            yield 16 * tokens * m.width * unit + row_sums
