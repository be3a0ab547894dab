"""Products, normalisations and attention of a transformer's layer on a tape: what each makes, keeps and hands back."""

from course_utils.core import accountant
from course_utils.core.predict.step_config import StepConfig
from course_utils.core.predict.storages import PASS, Parameter, Tensor
from course_utils.core.predict.tape import Tape
from course_utils.core.predict.transformer import FP32_BYTES


class LayerOperations:
    """The operations of a layer, for a model with these sizes and bytes a number."""

    def __init__(self, config: StepConfig) -> None:
        self.config, self.shape, self.n, self.sequence = (
            config,
            config.model,
            config.n,
            config.sequence,
        )
        self.tape = Tape(
            dtype_bytes=config.n, gradient_bytes=config.gradient_bytes, accumulate=config.accumulate
        )
        self.tokens = config.batch * config.sequence
        self.heads, self.kv_heads, self.head = (
            self.shape.heads,
            self.shape.kv_heads,
            self.shape.head_width,
        )
        self.matrices = accountant.matrices(self.shape)

    def weight(self, numbers: int) -> Parameter:
        return Parameter(self.n * numbers)

    # Products, and what stands between them.

    def product(self, x: Tensor, d: int, k: int, weight: Parameter | None = None) -> Tensor:
        """x W. On the way back, first the weight's gradient is made, then that of x."""
        edges, made = (weight or self.weight(d * k), x), x.nbytes // d * k
        return self.tape.op(
            "mm", edges, made, back=("mm", "mm"), saves=edges, flops=2 * x.nbytes // self.n * k
        )

    def linear(self, x: Tensor, name: str, *, splits: bool = False, folds: bool = False) -> Tensor:
        """x W + b, by the matrix's name, with b only if the model has it.

        Its gradient is copied if it lies in another order: where heads `split`, or where rows `fold`.
        """
        self.tape.where = name
        inputs, outputs = self.matrices[name]
        made = self.product(x, inputs, outputs)
        if folds:
            made = self.copied_back(made)
        if name in self.shape.biases:
            made = self.tape.op(
                "add", (self.weight(outputs), made), made.nbytes, back=("sum", PASS)
            )
        return self.copied_back(made) if splits else made

    def copied_back(self, x: Tensor) -> Tensor:
        """A view of x. Its gradient has to be copied before it can be viewed."""
        return self.tape.views(x, "clone", x.nbytes)[0]

    def copied(self, x: Tensor) -> Tensor:
        """A copy of x, with its numbers in another order."""
        return x._replace(storage=self.tape.one("clone", x.nbytes, reads=x.nbytes))

    def pointwise(self, name: str, x: Tensor) -> Tensor:
        """GELU or SiLU."""
        return self.tape.op(name, (x,), x.nbytes, back=f"{name}_backward", saves=(x,))

    def plus(self, a: Tensor, b: Tensor) -> Tensor:
        """a + b. Both get the same gradient, which is not copied."""
        return self.tape.op("add", (a, b), a.nbytes, back=(PASS, PASS))

    def times(self, a: Tensor, b: Tensor) -> Tensor:
        return self.tape.op("mul", (a, b), a.nbytes, back=("mul", "mul"), saves=(a, b))

    def norm(self, x: Tensor, where: str) -> Tensor:
        """RMSNorm or LayerNorm of a row as wide as the model."""
        return self._norm(x, self.shape.width, where, self.shape.norm_vectors)

    def head_norm(self, x: Tensor, where: str) -> Tensor:
        """The same of each head's numbers. It has a weight alone."""
        return self._norm(x, self.head, where, 1)

    def _norm(self, x: Tensor, width: int, where: str, vectors: int) -> Tensor:
        """One kernel, which keeps its input, and LayerNorm's two numbers of each row as well."""
        self.tape.where, a_row = where, x.nbytes // width
        edges = (x, *(self.weight(width) for _ in range(vectors)))
        if self.shape.rms_norm:
            return self.tape.op("rms_norm", edges, x.nbytes, back="rms_norm_backward", saves=(x,))
        name, options = "native_layer_norm", {"saves": (x,), "keeps": slice(1, 3)}
        return self.tape.op(name, edges, x.nbytes, a_row, a_row, back=f"{name}_backward", **options)

    # Attention.

    def attention(self, x: Tensor, turn: Tensor | None) -> Tensor:
        tape, anew = self.tape, self.shape.head_norms
        # In gradients, heads stand one behind the other.
        by_head = not self.config.fused and self.sequence > 1
        splits = by_head and self.heads > 1
        q = self.linear(x, "query", splits=splits and not (turn or anew))
        k = self.linear(x, "key", folds=by_head and self.config.batch > 1 and not anew)
        v = self.linear(x, "value", splits=by_head and self.kv_heads > 1)
        if anew:
            q, k = self.head_norm(q, "query norm"), self.head_norm(k, "key norm")
        if turn:
            q, k = self.rotated(q, turn, "query"), self.rotated(k, turn, "key")
        tape.where = "attention"
        mixed = (self._fused_attention if self.config.fused else self._attention)(q, k, v)
        if splits:
            mixed = self.copied(mixed)
        return self.linear(mixed, "out")

    def rotated(self, x: Tensor, turn: Tensor, where: str) -> Tensor:
        """x with rotary positions: each result is made of both halves."""
        tape, half = self.tape, x.nbytes // 2
        tape.where = f"{where}, rotated"
        first, second = tape.views(x, "cat", half, half)
        a, b = self._turned(first, turn), self._turned(second, turn)
        turned = tape.op("sub", (a, b), half, back=(PASS, "neg"))
        del a, b
        a, b = self._turned(second, turn), self._turned(first, turn)
        other = self.plus(a, b)
        del a, b
        return tape.op("cat", (turned, other), x.nbytes, back=(PASS, PASS))

    def _turned(self, x: Tensor, turn: Tensor) -> Tensor:
        reads = x.nbytes + turn.nbytes
        return self.tape.op("mul", (x,), x.nbytes, back="mul", saves=(turn,), reads=reads)

    @property
    def _flops(self) -> int:
        """The FLOPs of one of attention's two products."""
        return 2 * self.tokens * self.sequence * self.shape.query_width

    def _fused_attention(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Two products in one kernel, and five on the way back. Of each row of scores one number is kept."""
        name, sums = (
            "scaled_dot_product_attention",
            max(self.n, FP32_BYTES) * self.tokens * self.heads,
        )
        options = {"keeps": slice(2), "flops": 2 * self._flops, "flops_back": 5 * self._flops}
        return self.tape.op(
            name, (q, k, v), q.nbytes, sums, back=f"{name}_backward", saves=(q, k, v), **options
        )

    def _attention(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """softmax(q kᵀ / √d) v, in single operations."""
        tape, s = self.tape, self.sequence
        in_groups, by_head = (
            self.kv_heads < self.heads and s > 1,
            min(self.config.batch, s, self.kv_heads) > 1,
        )
        square, n = self.n * s * s, self.n * self.tokens * self.heads * s
        rows = self.copied(q) if in_groups else q
        rows_by_head = self.copied(rows) if by_head and not in_groups else rows
        scores = self._batched(rows_by_head, self.copied(k) if by_head else k, n)
        del rows_by_head
        scores = tape.op("mul", (scores,), n, back="mul")
        full = tape.one("full", square)
        later = tape.one("triu", square, reads=square)
        del full
        masked = scores._replace(
            storage=tape.one("add", n, reads=n + square)
        )  # a mask has no gradient
        weights = tape.op("_softmax", (masked,), n, back="_softmax_backward_data", keeps=slice(1))
        del masked
        mixed = self._batched(weights, self.copied(v) if by_head else v, q.nbytes)
        del later
        return self.copied_back(mixed) if in_groups or by_head else mixed

    def _batched(self, a: Tensor, b: Tensor, nbytes: int) -> Tensor:
        """A product for each head."""
        return self.tape.op(
            "bmm", (b, a), nbytes, back=("bmm", "bmm"), saves=(a, b), flops=self._flops
        )
