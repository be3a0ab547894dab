"""The course's transformer, written for sizes: `models.Transformer` line by line, on a tape.

Where a name stands for a tensor there, it does here, so that what is held is the same: tests/core/test_timeline.py
compares both, operation by operation.
"""

from collections.abc import Iterator
from functools import partial

from course_utils.core.predict.layer_operations import LayerOperations
from course_utils.core.predict.step_config import StepConfig
from course_utils.core.predict.storages import ACTIVATIONS, LOGITS, PASS, Operation, Tensor
from course_utils.core.predict.tape import Frame
from course_utils.core.predict.transformer import FP32_BYTES, INT64_BYTES


def operations(config: StepConfig, layers: int) -> list[Operation]:
    """Forward, loss and backward of so many of the model's layers."""
    step = ForwardPass(config, layers)
    loss = step.loss()
    step.tape.phase = "backward"
    one = step.tape.one("ones_like", FP32_BYTES, reads=loss.nbytes, part=LOGITS)
    step.tape.backward(one)
    del loss, one  # both are held to the end
    return step.tape.written()


class ForwardPass(LayerOperations):
    """One forward pass and its loss, of so many layers."""

    def __init__(self, config: StepConfig, layers: int) -> None:
        super().__init__(config)
        self.layers, numbers = layers, self.shape.vocabulary * self.shape.width
        self.embedding = self.weight(numbers)
        self.output = self.embedding if self.shape.tied else self.weight(numbers)

    # A layer.

    def feed_forward(self, x: Tensor) -> Tensor:
        """The feed-forward part of a layer: gated, or with GELU."""
        if self.shape.gated:
            inner = self._gated(x)
        else:
            inner = self.linear(x, "up")
            inner = self.pointwise("gelu", inner)
        return self.linear(inner, "down")

    def _gated(self, x: Tensor) -> Tensor:
        gate = self.linear(x, "gate")
        gate = self.pointwise("silu", gate)
        up = self.linear(x, "up")
        self.tape.where = "gate × up"
        return self.times(gate, up)

    def block(self, x: Tensor, turn: Tensor | None, number: int) -> Tensor:
        """x + attention(norm(x)), then x + feed_forward(norm(x))."""
        tape = self.tape
        tape.layer = number
        mixed = self.attention(self.norm(x, "norm1"), turn)
        tape.where = "x + attention"
        x = self.plus(x, mixed)
        del mixed
        made = self.feed_forward(self.norm(x, "norm2"))
        tape.where = "x + feed-forward"
        return self.plus(x, made)

    def blocks(self, x: Tensor, turn: Tensor | None, numbers: range) -> Tensor:
        for number in numbers:
            x = self.block(x, turn, number)
        return x

    # What stands around the layers.

    def embedded(self) -> Tensor:
        """The tokens' vectors. If positions are learned, their vectors are added."""
        tape, shape, row = self.tape, self.shape, self.n * self.shape.width
        tape.where, numbers = "token embedding", row * self.tokens
        options = {"back": "embedding_dense_backward", "reads": numbers + INT64_BYTES * self.tokens}
        x = tape.op("embedding", (self.embedding,), numbers, **options)
        if not shape.learned_positions:
            return x
        tape.where, positions = "positions", self.weight(shape.context * shape.width)
        (used,) = tape.views(positions, "slice_backward", row * self.sequence)
        return tape.op("add", (x, used), numbers, back=(PASS, "sum"))

    def rotation(self) -> Tensor:
        """Cosine and sine of each position and pair, in fp32, and then in the model's dtype."""
        tape, pairs, four = self.tape, self.head // 2, FP32_BYTES
        tape.where, numbers = "rotary angles", four * pairs * self.sequence
        turns = tape.one("arange", INT64_BYTES * pairs)
        for name in ("div", "neg", "pow"):
            turns = tape.one(name, four * pairs, reads=turns.nbytes)
        places = tape.one("arange", INT64_BYTES * self.sequence)
        angles = tape.one("mul", numbers, reads=places.nbytes + turns.nbytes)
        del places
        cos, sin = (tape.one(name, numbers, reads=angles.nbytes) for name in ("cos", "sin"))
        both = tape.one("stack", 2 * numbers, reads=2 * numbers)
        del cos, sin
        if self.n < four:
            both = tape.one("_to_copy", 2 * numbers // four * self.n, reads=2 * numbers)
        both.keep_as(ACTIVATIONS)
        return Tensor(both, both.nbytes)

    def hidden(self) -> Tensor:
        """The hidden state that the output matrix reads."""
        x = self.embedded()
        turn = self.rotation() if self.shape.rotary else None
        for numbers, again in self.segments():
            x = (self._recomputed if again else self.blocks)(x, turn, numbers)
        self.tape.layer = None
        return self.norm(x, "last norm")

    def segments(self) -> Iterator[tuple[range, bool]]:
        """All layers, in segments. A segment that is recomputed runs a second time on the way back."""
        recompute = self.config.recompute
        segment = self.config.segment if recompute is True else 1
        for begin in range(0, self.layers, segment):
            again = begin % 2 == 1 if recompute == "every other layer" else bool(recompute)
            yield range(begin, min(begin + segment, self.layers)), again

    def _recomputed(self, x: Tensor, turn: Tensor | None, numbers: range) -> Tensor:
        """Layers that keep only their input, and run a second time on the way back."""
        x.storage.keep_as(ACTIVATIONS)
        run = partial(self.blocks, x, turn, numbers)
        return Frame(
            self.tape, run, products=self.config.recompute == "every other product"
        ).forward()

    # The loss.

    def loss(self) -> Tensor:
        """The loss of all tokens at once, or in pieces; in single operations, in a kernel of its own, or in one kernel with the output."""
        x, self.tape.phase = self.hidden(), "loss"
        if self.config.fused_loss == "with output":
            return self._loss_with_output(x)
        if self.config.pieces > 1:
            return self._loss_in_pieces(x)
        logits = self.logits(x)
        return (
            self._loss_in_place(logits)
            if self.config.fused_loss
            else self.cross_entropy(self.in_fp32(logits))
        )

    def logits(self, x: Tensor) -> Tensor:
        """x times the output matrix."""
        self.tape.where = "output"
        made = self.product(x, self.shape.width, self.shape.vocabulary, self.output)
        made.storage.keep_as(LOGITS)
        self.tape.where = "cross-entropy"
        return made

    def in_fp32(self, logits: Tensor) -> Tensor:
        wide = logits.nbytes // self.n * FP32_BYTES
        if wide == logits.nbytes:
            return logits
        return self.tape.op("_to_copy", (logits,), wide, back="_to_copy", part=LOGITS)

    def cross_entropy(self, logits: Tensor) -> Tensor:
        """The cross-entropy of the logits. It keeps the logarithm of every probability."""
        tape, four, n = self.tape, FP32_BYTES, logits.nbytes
        options = {"keeps": slice(1), "part": LOGITS}
        logs = tape.op("_log_softmax", (logits,), n, back="_log_softmax_backward_data", **options)
        options = {"saves": (logs,), "keeps": slice(1, 2), "part": LOGITS}
        return tape.op("nll_loss_forward", (logs,), four, four, back="nll_loss_backward", **options)

    def _loss_in_pieces(self, x: Tensor) -> Tensor:
        """The loss, piece by piece. The logits of a piece exist for its loss, and are computed again on the way back."""
        tape, four, size = self.tape, FP32_BYTES, -(-self.tokens // self.config.pieces)
        sizes = (min(size, self.tokens - begin) for begin in range(0, self.tokens, size))
        parts = tape.views(x, "cat", *(x.nbytes // self.tokens * tokens for tokens in sizes))
        x.storage.keep_as(ACTIVATIONS)
        losses = [Frame(tape, partial(self._loss_of_piece, part)).forward() for part in parts]
        back, options = [PASS] * len(losses), {"part": LOGITS}
        stacked = tape.op("stack", losses, four * len(losses), back=back, **options)
        total = Tensor(tape.one("sum", four, reads=stacked.nbytes, **options), four, stacked.node)
        del stacked
        return tape.op("div", (total,), four, back="div", **options)

    def _loss_of_piece(self, x: Tensor) -> Tensor:
        return self.cross_entropy(self.in_fp32(self.logits(x)))

    def _loss_in_place(self, logits: Tensor) -> Tensor:
        """One kernel keeps the logits and a number for each row; on the way back the gradient is written over them."""
        four = FP32_BYTES
        options = {
            "back": "cross_entropy_backward",
            "saves": (logits,),
            "keeps": slice(1, 2),
            "part": LOGITS,
        }
        return self.tape.op(
            "cross_entropy", (logits,), four, four * self.tokens, over=True, **options
        )

    def _loss_with_output(self, x: Tensor) -> Tensor:
        """One kernel never has all logits: it makes the gradients of the output and of its input at once."""
        self.tape.where, edges = "output and cross-entropy", (self.output, x)
        flops = 6 * self.tokens * self.output.nbytes // self.n
        options = {"back": "linear_cross_entropy_backward", "keeps": slice(1, 3), "flops": flops}
        sizes = FP32_BYTES, self.output.nbytes, x.nbytes
        return self.tape.op(
            "linear_cross_entropy", edges, *sizes, over=True, flops_back=0, **options
        )
