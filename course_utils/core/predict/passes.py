"""The course's transformer, written for sizes: `models.Transformer` line by line, on a tape.

Where a name stands for a tensor there, one stands for it here, so that the same is held.
tests/core/test_timeline.py compares the two, operation by operation.
"""

from collections.abc import Iterator
from functools import partial

from course_utils.core.predict.feed_forwards import FeedForwards
from course_utils.core.predict.step_config import StepConfig
from course_utils.core.predict.storages import ACTIVATIONS, LOGITS, PASS, Operation, Tensor
from course_utils.core.predict.tape import Frame
from course_utils.core.predict.transformer import FP32_BYTES, INT64_BYTES


def operations(config: StepConfig, layers: int) -> list[Operation]:
    """Return the operations of forward, loss and backward, for a model with `layers` layers."""
    step = ForwardPass(config, layers)
    loss = step.loss()
    step.tape.phase = "backward"
    # The gradient of the loss with respect to itself, which is 1: the backward pass begins with it.
    gradient = step.tape.one("ones_like", FP32_BYTES, reads=loss.nbytes, part=LOGITS)
    step.tape.backward(gradient)
    del loss, gradient  # a training step holds both until here
    return step.tape.written()


class ForwardPass(FeedForwards):
    """One forward pass and its loss, for the model of `config` with `layers` layers.

    Nothing is computed, because a `Tensor` is only a number of bytes here. Each method writes the
    operations down that torch would run, and deletes a name where the model lets go of the tensor.
    """

    def __init__(self, config: StepConfig, layers: int) -> None:
        super().__init__(config)
        self.layers = layers
        numbers = self.shape.vocabulary * self.shape.width
        self.embedding = self.weight(numbers)
        self.output = self.embedding if self.shape.tied else self.weight(numbers)

    # A layer.

    def block(self, x: Tensor, rotation: Tensor | None, number: int) -> Tensor:
        """Return the result of layer `number`.

        The layer adds two parts: y = x + attention(norm(x)), then y + feed_forward(norm(y)).
        """
        tape = self.tape
        tape.layer = number
        mixed = self.attention(self.norm(x, "norm1"), rotation)
        tape.where = "x + attention"
        x = self.plus(x, mixed)
        del mixed
        made = self.feed_forward(self.norm(x, "norm2"))
        tape.where = "x + feed-forward"
        return self.plus(x, made)

    def blocks(self, x: Tensor, rotation: Tensor | None, numbers: range) -> Tensor:
        """Return the result of the layers of these numbers, one after the other."""
        for number in numbers:
            x = self.block(x, rotation, number)
        return x

    # Before and behind the layers.

    def embedded(self) -> Tensor:
        """Return the tokens' vectors. If positions are learned, their vectors are added."""
        tape = self.tape
        shape = self.shape
        tape.where = "token embedding"
        vector_bytes = self.dtype_bytes * shape.width  # of one token
        nbytes = vector_bytes * self.tokens
        x = tape.op(
            "embedding",
            (self.embedding,),
            nbytes,
            back="embedding_dense_backward",
            reads=nbytes + INT64_BYTES * self.tokens,  # a row for each token, and the tokens
        )
        if not shape.learned_positions:
            return x
        tape.where = "positions"
        positions = self.weight(shape.context * shape.width)
        (used,) = tape.views(positions, "slice_backward", vector_bytes * self.sequence)
        # All sequences of the batch use the same rows, so their gradient is a sum over the batch.
        return tape.op("add", (x, used), nbytes, back=(PASS, "sum"))

    def rotation(self) -> Tensor:
        """Return cosine and sine of each pair's angle at each position, in the model's dtype."""
        tape = self.tape
        tape.where = "rotary angles"
        pairs = self.shape.head_width // 2
        angles_bytes = FP32_BYTES * pairs * self.sequence
        # The angle of pair i from one position to the next: base^(-2i/D), where D is the head's
        # width. The three operations are those of `models.rotation`.
        turns = tape.one("arange", INT64_BYTES * pairs)
        for name in ("div", "neg", "pow"):
            turns = tape.one(name, FP32_BYTES * pairs, reads=turns.nbytes)
        places = tape.one("arange", INT64_BYTES * self.sequence)
        angles = tape.one("mul", angles_bytes, reads=places.nbytes + turns.nbytes)
        del places
        cos = tape.one("cos", angles_bytes, reads=angles.nbytes)
        sin = tape.one("sin", angles_bytes, reads=angles.nbytes)
        both = tape.one("stack", 2 * angles_bytes, reads=2 * angles_bytes)
        del cos, sin
        if self.dtype_bytes < FP32_BYTES:
            narrow = 2 * angles_bytes // FP32_BYTES * self.dtype_bytes  # bytes in the model's dtype
            both = tape.one("_to_copy", narrow, reads=2 * angles_bytes)
        both.keep_as(ACTIVATIONS)  # the backward pass of each layer needs it
        return Tensor(both, both.nbytes)

    def hidden(self) -> Tensor:
        """Return the hidden state that the output matrix reads."""
        x = self.embedded()
        rotation = self.rotation() if self.shape.rotary else None
        for numbers, recomputes in self.segments():
            if recomputes:
                x = self._recomputed(x, rotation, numbers)
            else:
                x = self.blocks(x, rotation, numbers)
        self.tape.layer = None
        return self.norm(x, "last norm")

    def segments(self) -> Iterator[tuple[range, bool]]:
        """Yield the layers of each segment, and whether the segment is recomputed.

        `recompute` is True, False, "every other layer" (the second, the fourth, and so on), or
        "every other product": then all layers are, but each keeps half of its products.
        """
        recompute = self.config.recompute
        segment = self.config.segment if recompute is True else 1
        for begin in range(0, self.layers, segment):
            recomputes = bool(recompute)  # True for a text, too
            if recompute == "every other layer":
                recomputes = begin % 2 == 1  # layers count from 0, so the second one is 1
            end = min(begin + segment, self.layers)
            yield range(begin, end), recomputes

    def _recomputed(self, x: Tensor, rotation: Tensor | None, numbers: range) -> Tensor:
        """Return the result of a segment of layers that keeps only its input x."""
        x.storage.keep_as(ACTIVATIONS)
        run = partial(self.blocks, x, rotation, numbers)
        keeps_products = self.config.recompute == "every other product"
        frame = Frame(self.tape, run, keeps_products=keeps_products)
        return frame.forward()

    # The loss.

    def loss(self) -> Tensor:
        """Return the loss, made of all tokens at once or in pieces.

        A loss of all tokens is made by single operations, or by a kernel of its own, or by one
        kernel together with the output's product.
        """
        x = self.hidden()
        self.tape.phase = "loss"
        if self.config.fused_loss == "with output":
            return self._loss_with_output(x)
        if self.config.pieces > 1:
            return self._loss_in_pieces(x)
        logits = self.logits(x)
        if self.config.fused_loss:  # True: "with output" has returned above
            return self._loss_in_place(logits)
        return self.cross_entropy(self.in_fp32(logits))

    def logits(self, x: Tensor) -> Tensor:
        """Return x times the output matrix.

        All callers go on with the loss, so `where` is set to "cross-entropy" for what follows.
        """
        self.tape.where = "output"
        made = self.product(x, self.shape.width, self.shape.vocabulary, self.output)
        made.storage.keep_as(LOGITS)
        self.tape.where = "cross-entropy"
        return made

    def in_fp32(self, logits: Tensor) -> Tensor:
        """Return a copy of the logits in fp32; the logits themselves if they are in fp32."""
        wide = logits.nbytes // self.dtype_bytes * FP32_BYTES  # bytes in fp32
        if wide == logits.nbytes:
            return logits
        return self.tape.op("_to_copy", (logits,), wide, back="_to_copy", part=LOGITS)

    def cross_entropy(self, logits: Tensor) -> Tensor:
        """Return the cross-entropy of the logits. It saves the logarithm of every probability."""
        logs = self.tape.op(
            "_log_softmax",
            (logits,),
            logits.nbytes,
            back="_log_softmax_backward_data",
            keeps=slice(1),  # of its results the first: the logarithms
            part=LOGITS,
        )
        return self.tape.op(
            "nll_loss_forward",
            (logs,),
            FP32_BYTES,  # the loss
            FP32_BYTES,  # the number of tokens, by which it was divided
            back="nll_loss_backward",
            saves=(logs,),
            keeps=slice(1, 2),  # of its results the second: the number of tokens
            part=LOGITS,
        )

    def _loss_in_pieces(self, x: Tensor) -> Tensor:
        """Return the loss, computed piece by piece.

        The logits of a piece are held only for its loss, and computed again in the backward pass.
        """
        tape = self.tape
        row = x.nbytes // self.tokens  # bytes of one token's hidden state
        most_tokens = -(-self.tokens // self.config.pieces)  # of a piece: rounded up
        sizes = []
        for begin in range(0, self.tokens, most_tokens):
            tokens = min(most_tokens, self.tokens - begin)
            sizes.append(row * tokens)
        # The pieces are views of x. The backward pass joins their gradients by the operation "cat".
        parts = tape.views(x, "cat", *sizes)
        x.storage.keep_as(ACTIVATIONS)

        losses = []
        for part in parts:
            frame = Frame(tape, partial(self._loss_of_piece, part))
            losses.append(frame.forward())
        back = [PASS] * len(losses)  # each loss gets its part of the gradient, without a copy
        stacked = tape.op("stack", losses, FP32_BYTES * len(losses), back=back, part=LOGITS)
        loss_sum = tape.one("sum", FP32_BYTES, reads=stacked.nbytes, part=LOGITS)
        # In the backward pass, the sum only hands its gradient on, so it has no node of its own.
        total = Tensor(loss_sum, FP32_BYTES, stacked.node)
        del stacked
        # Divided by the number of tokens.
        return tape.op("div", (total,), FP32_BYTES, back="div", part=LOGITS)

    def _loss_of_piece(self, x: Tensor) -> Tensor:
        """Return the cross-entropy of the tokens of one piece, whose hidden state is x."""
        return self.cross_entropy(self.in_fp32(self.logits(x)))

    def _loss_in_place(self, logits: Tensor) -> Tensor:
        """Return the loss, made by one kernel that saves the logits and a number for each row.

        In the backward pass, the gradient of the logits is written over the logits.
        """
        return self.tape.op(
            "cross_entropy",
            (logits,),
            FP32_BYTES,  # the loss
            FP32_BYTES * self.tokens,  # a number for each row
            back="cross_entropy_backward",
            saves=(logits,),
            keeps=slice(1, 2),  # the number for each row
            over=True,  # over the logits
            part=LOGITS,
        )

    def _loss_with_output(self, x: Tensor) -> Tensor:
        """Return the loss, made by one kernel with the output's product: it never has all logits.

        The kernel makes the gradients of the output matrix and of its input x in the forward pass
        already, so no product is left for the backward pass.
        """
        self.tape.where = "output and cross-entropy"
        return self.tape.op(
            "linear_cross_entropy",
            (self.output, x),
            FP32_BYTES,  # the loss
            self.output.nbytes,  # the gradient of the output matrix
            x.nbytes,  # the gradient of x
            back="linear_cross_entropy_backward",
            keeps=slice(1, 3),  # the two gradients
            over=True,  # over the two gradients
            # For each weight and token: 2 forward, and 2 for each of the two gradients.
            flops=6 * self.tokens * self.output.nbytes // self.dtype_bytes,
            flops_back=0,
        )
