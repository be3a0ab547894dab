"""Activation checkpointing: keep the input of each segment of blocks, and compute the segment's inside once more."""

import math
from dataclasses import dataclass, replace

from course_utils.predict.operations import check_sizes, dtype_bytes, matmul_flops
from course_utils.predict.transformer import Transformer
from course_utils.quantities import Ledger, Number


@dataclass(frozen=True)
class BlockStack:
    """L equal blocks, one after the other, in segments of s; a segment of 0 is none, and nothing is computed again.

    Bytes are those that autograd keeps, parameters aside. What is in a block is counted with its input, which
    it keeps; what the loss keeps, and generators' states, are not in it.

    >>> stack = mlp_stack(16, batch=32, width=64)
    >>> [stack.peak_bytes(segment).total for segment in (0, 1, 2, 4, 8, 16)]
    [1179648, 196608, 204800, 319488, 598016, 1179648]
    """

    layers: int
    input_bytes: int  # of one block
    block_bytes: int  # all that one block keeps, its input among it
    forward_flops: int  # of one block
    backward_flops: int  # of one block
    last_flops: int  # of the product that ends a block: nothing is kept behind it
    parameters: int = 0  # of one block
    again_bytes: int = 0  # where part of a block is computed again: the most that this adds to what is kept
    again_flops: int = 0  # half of it in the product that ends that part

    def __post_init__(self) -> None:
        check_sizes(**vars(self))
        if not self.layers:
            raise ValueError("A stack has at least one block; got 0 layers.")

    def segments(self, segment: int) -> list[int]:
        """How many blocks each segment has: s, and the rest in the last one.

        >>> mlp_stack(6, batch=1, width=1).segments(4)
        [4, 2]
        """
        check_sizes(segment=segment)
        if segment > self.layers:
            raise ValueError(
                f"A segment has at most all {self.layers} blocks, and 0 stands for no recomputing; got {segment}."
            )
        if segment and self.again_flops:
            raise ValueError(
                "Here the scores alone are computed again, so the segment has to be 0. "
                "For segments take a stack without scores_again."
            )
        begins = range(0, self.layers, segment) if segment else []
        return [min(segment, self.layers - begin) for begin in begins]

    def kept_bytes(self, segment: int) -> int:
        """⌈L / s⌉ × input: what is kept when the forward pass is done; without segments L × block."""
        count = len(self.segments(segment))
        return count * self.input_bytes if count else self.layers * self.block_bytes

    def peak_bytes(self, segment: int) -> Ledger:
        """(L / s - 1) × input + s × block: the most that is kept at one time, when one segment's inside is rebuilt.

        The backward pass begins at the last segment, with the inputs of all those before it still to be kept. If
        s does not divide L, the last one is shorter, and the one before it may be the one that counts.

        >>> mlp_stack(6, batch=32, width=64).peak_bytes(4)
                                      bytes
        inputs of earlier segments        0
        inside of one segment       294,912
        total                       294,912
        """
        segments = self.segments(segment) or [self.layers]
        insides = [length * self.block_bytes + self.again_bytes for length in segments]
        before = max(range(len(segments)), key=lambda n: n * self.input_bytes + insides[n])
        earlier = before * self.input_bytes
        parts = {"inputs of earlier segments": earlier, "inside of one segment": insides[before]}
        return Ledger(parts, unit="bytes")

    def step_flops(self, segment: int, *, early_stop: bool = True) -> Ledger:
        """L × (forward + backward), and with segments L × forward again; early stop leaves out each one's last product.

        Recomputing stops early when the last tensor is rebuilt that the backward pass needs, which the product at
        the end of a segment comes after. The first block's input needs a gradient, too.

        >>> mlp_stack(8, batch=32, width=64).step_flops(2)
                        FLOPs
        forward    16,777,216
        backward   33,554,432
        recompute  12,582,912
        total      62,914,560
        """
        segments = self.segments(segment)
        again = self.layers * (self.again_flops - early_stop * self.again_flops // 2)
        if segments:
            again = self.layers * self.forward_flops - early_stop * len(segments) * self.last_flops
        forward, backward = self.layers * self.forward_flops, self.layers * self.backward_flops
        return Ledger({"forward": forward, "backward": backward, "recompute": again}, unit="FLOPs")

    def flops_ratio(self, segment: int, *, early_stop: bool = True) -> Number:
        """A step's FLOPs over those of a step that computes nothing again: 8/6, and with early stop less.

        >>> [round(6 * mlp_stack(8, batch=32, width=64).flops_ratio(s), 3) for s in (0, 1, 2, 4, 8)]
        [6.0, 7.0, 7.5, 7.75, 7.875]
        """
        flops = self.step_flops(segment, early_stop=early_stop)
        return flops.total / (flops.total - flops["recompute"])

    @property
    def best_segments(self) -> list[int]:
        """All lengths with the least peak, found by trying every one; 0 is among them where none helps.

        >>> linear_stack(16, batch=32, width=64).best_segments, mlp_stack(16, batch=32, width=64).best_segments
        ([3, 4, 5, 6], [1])
        """
        tried = range(1 if self.again_flops else self.layers + 1)
        peaks = {segment: self.peak_bytes(segment).total for segment in tried}
        return [segment for segment, peak in peaks.items() if peak == min(peaks.values())]

    @property
    def best_segment(self) -> int:
        """The one of `best_segments` with the fewest FLOPs."""
        return min(self.best_segments, key=lambda segment: self.step_flops(segment).total)

    @property
    def root_segment(self) -> float:
        """√(L × input / block), where (L / s - 1) × input + s × block is least; √L if a block keeps its input alone.

        >>> round(mlp_stack(16, batch=32, width=64).root_segment, 2), linear_stack(16, batch=32, width=64).root_segment
        (1.33, 4.0)
        """
        return math.sqrt(self.layers * self.input_bytes / self.block_bytes)


def linear_stack(layers: int, batch: int, width: int, *, dtype: str = "fp32") -> BlockStack:
    """Blocks x W: each keeps its input and nothing else, and its one product ends it."""
    check_sizes(layers=layers, batch=batch, width=width)
    kept, flops = batch * width * dtype_bytes(dtype), matmul_flops(batch, width, width)
    return BlockStack(layers, kept, kept, flops, 2 * flops, flops, parameters=width**2)


def mlp_stack(layers: int, batch: int, width: int, *, dtype: str = "fp32") -> BlockStack:
    """Blocks x + gelu(x W1) W2, H → 4H → H: each keeps 9 numbers for one of its input, 1 + 4 before GELU + 4 after."""
    check_sizes(layers=layers, batch=batch, width=width)
    kept, flops = batch * width * dtype_bytes(dtype), matmul_flops(batch, width, 4 * width)
    return BlockStack(layers, kept, 9 * kept, 2 * flops, 4 * flops, flops, parameters=8 * width**2)


def transformer_stack(
    shape: Transformer,
    batch: int,
    sequence: int,
    *,
    dtype: str = "fp32",
    fused: bool = False,
    fused_norm: bool = False,
    scores_again: bool = False,
) -> BlockStack:
    """A transformer's layers, without embedding, last norm and output. What rotary layers share is not counted.

    With `scores_again`, attention's scores are not kept but computed once more: B × A × S² numbers a layer fewer,
    for 2BS²H FLOPs (4BS²H without early stop). Exact for `models.Transformer` on a CPU.

    >>> shape = Transformer(12, 768, 12, 50257, 1024)
    >>> [transformer_stack(shape, 1, 1024, scores_again=again).peak_bytes(0).total for again in (False, True)]
    [1208156160, 619896832]
    """
    if scores_again and (fused or shape.kv_heads not in (None, shape.heads)):
        raise ValueError(
            "Scores are computed again where they were kept: with attention that is not fused, "
            "and here with as many heads for keys and values as for queries."
        )
    one, none = replace(shape, layers=1), replace(shape, layers=0)
    ways = {"dtype": dtype, "fused": fused, "fused_norm": fused_norm}
    of_one, of_none = (each.activation_bytes(batch, sequence, **ways) for each in (one, none))
    parts = {name: of_one[name] - of_none[name] for name in of_one if name != "rotation"}
    flops, tokens = one.forward_flops(batch, sequence), batch * sequence
    forward, scores = flops["matrices"] + flops["attention"], parts["scores"]
    inputs = tokens * shape.width * dtype_bytes(dtype)
    # When the scores come back, what stands behind them in their layer is done with. Of several sequences, torch
    # multiplies copies of queries, keys and values that stand head by head.
    done = parts["normalisations"] // 2 + parts["feed-forward"] + inputs
    copies = 3 * inputs if min(batch, sequence, shape.heads) > 1 else 0
    return BlockStack(
        layers=shape.layers,
        input_bytes=inputs,
        block_bytes=sum(parts.values()) - scores_again * scores,
        forward_flops=forward,
        backward_flops=2 * forward + fused * flops["attention"] // 2,
        last_flops=matmul_flops(tokens, shape.inner_width, shape.width),
        parameters=one.parameters - none.parameters,
        again_bytes=scores_again * max(0, scores + copies - done),
        again_flops=scores_again * flops["attention"],
    )
