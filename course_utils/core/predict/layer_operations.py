"""The operations of a transformer's layer on a tape: products, normalisations and attention.

Each method writes down what an operation makes, what autograd saves for it, and what the backward
pass makes of its result's gradient.
"""

from course_utils.core import accountant
from course_utils.core.predict.step_config import StepConfig
from course_utils.core.predict.storages import PASS, Parameter, Tensor
from course_utils.core.predict.tape import Tape
from course_utils.core.predict.transformer import FP32_BYTES


class LayerOperations:
    """The operations of a layer, with the model, the dtype and the tokens of `config`.

    Nothing is computed, because a `Tensor` is only a number of bytes here. Each method writes the
    operations down that torch would run. Code is written as the model's code is, and deletes a name
    where the model lets go of the tensor, so that the same bytes are held.
    """

    def __init__(self, config: StepConfig) -> None:
        self.config = config
        self.shape = config.model
        self.dtype_bytes = config.dtype_bytes
        self.sequence = config.sequence
        self.tokens = config.batch * config.sequence
        self.matrices = accountant.all_matrices(config.model)
        self.tape = Tape(
            dtype_bytes=config.dtype_bytes,
            gradient_bytes=config.gradient_bytes,
            accumulate=config.accumulate,
        )

    def weight(self, numbers: int) -> Parameter:
        """Return a new parameter of `numbers` numbers, in the model's dtype."""
        return Parameter(self.dtype_bytes * numbers)

    # Products, and what comes between them.

    def product(
        self,
        x: Tensor,
        inputs: int,
        outputs: int,
        weight: Parameter | None = None,
        *,
        flat: bool = False,
    ) -> Tensor:
        """Return x W, with a new W unless a weight is given. W has `inputs` × `outputs` numbers.

        In the backward pass, the gradient of W is made first, then the gradient of x. That of W is
        also added to an earlier batch's first, unless x is `flat`: a matrix with a row for each
        token, whose gradient does not have to be brought into another shape before it is added.
        """
        if weight is None:
            weight = self.weight(inputs * outputs)
        rows = x.nbytes // (self.dtype_bytes * inputs)  # of x, each of `inputs` numbers
        made = self.tape.op(
            "mm",
            (weight, x),
            self.dtype_bytes * rows * outputs,
            back=("mm", "mm"),  # one product for the gradient of W, one for that of x
            saves=(weight, x),
            flops=2 * rows * inputs * outputs,
        )
        if flat and made.node:
            made.node.flat = True
        return made

    def linear(
        self,
        x: Tensor,
        name: str,
        *,
        splits: bool = False,
        folds: bool = False,
        flat: bool = False,
    ) -> Tensor:
        """Return x times the matrix `name`, plus the matrix's bias if the model has one.

        The result's gradient may arrive in a memory order that the product cannot read, and is then
        copied. With `splits`, the copy is made where heads are split, which is after the bias is
        added. With `folds`, it is made before the bias is added, where the rows of all sequences
        become the rows of one matrix. `flat` says that x is a matrix already, as in `product`.
        """
        self.tape.where = name
        matrix = self.matrices[name]
        made = self.product(x, matrix.inputs, matrix.outputs, flat=flat)
        if folds:
            made = self.copied_back(made)
        if matrix.bias:
            edges = (self.weight(matrix.outputs), made)
            # The bias is added to each row, so its gradient is the sum of the rows' gradients.
            made = self.tape.op("add", edges, made.nbytes, back=("sum", PASS))
        if splits:
            made = self.copied_back(made)
        return made

    def copied_back(self, x: Tensor) -> Tensor:
        """Return a view of x whose gradient arrives in another memory order.

        So the backward pass makes the gradient of x as a copy of the view's.
        """
        # "clone" is the backward pass's operation. The forward pass copies nothing.
        (view,) = self.tape.views(x, "clone", x.nbytes)
        return view

    def copied(self, x: Tensor) -> Tensor:
        """Return a copy of x, with its numbers in another order."""
        # The copy has the node of x: its gradient is the gradient of x, and nothing computes it.
        return x._replace(storage=self.tape.one("clone", x.nbytes, reads=x.nbytes))

    def pointwise(self, name: str, x: Tensor) -> Tensor:
        """Return GELU or SiLU of each number; `name` is torch's name for the operation."""
        return self.tape.op(name, (x,), x.nbytes, back=f"{name}_backward", saves=(x,))

    def plus(self, a: Tensor, b: Tensor) -> Tensor:
        """Return a + b. Both a and b get the result's gradient itself, without a copy."""
        return self.tape.op("add", (a, b), a.nbytes, back=(PASS, PASS))

    def times(self, a: Tensor, b: Tensor) -> Tensor:
        """Return a × b, number by number."""
        # The gradient of a is the result's gradient × b, and that of b the same × a.
        return self.tape.op("mul", (a, b), a.nbytes, back=("mul", "mul"), saves=(a, b))

    def norm(self, x: Tensor, where: str) -> Tensor:
        """Return RMSNorm or LayerNorm of each row, which is as wide as the model."""
        return self._norm(x, self.shape.width, where, self.shape.norm_vectors)

    def head_norm(self, x: Tensor, where: str) -> Tensor:
        """Return RMSNorm or LayerNorm of each head's numbers, with a weight, without a bias."""
        return self._norm(x, self.shape.head_width, where, 1)

    def _norm(self, x: Tensor, width: int, where: str, vectors: int) -> Tensor:
        """Return x normalised in rows of `width` numbers, by one kernel that saves x.

        LayerNorm saves two numbers of each row as well. If `vectors` is 1 there is a weight, and if
        it is 2 also a bias.
        """
        self.tape.where = where
        weights = [self.weight(width) for _ in range(vectors)]
        edges = (x, *weights)
        if self.shape.rms_norm:
            return self.tape.op("rms_norm", edges, x.nbytes, back="rms_norm_backward", saves=(x,))
        number_a_row = x.nbytes // width  # bytes: one number for each row
        return self.tape.op(
            "native_layer_norm",
            edges,
            x.nbytes,
            number_a_row,  # the mean
            number_a_row,  # 1 over the standard deviation
            back="native_layer_norm_backward",
            saves=(x,),
            keeps=slice(1, 3),  # the mean, and 1 over the standard deviation
        )

    # Attention.

    def attention(self, x: Tensor, rotation: Tensor | None) -> Tensor:
        """Return the result of a layer's attention, the products of its four matrices included.

        `rotation` has the cosines and sines of rotary positions; it is None without them.
        """
        # Attention in single operations hands gradients back head by head, and the matrices want
        # them token by token. Where these orders differ, `linear` counts a copy of the gradient.
        reorders = not self.config.fused and self.sequence > 1  # one token has only one order
        has_heads = reorders and self.shape.heads > 1  # with one head the two orders are the same
        # The query's gradient comes head by head, unless a rotation has just put it in order.
        query_splits = has_heads and not rotation
        key_folds = reorders and self.config.batch > 1  # a batch's rows become one matrix's
        value_splits = reorders and self.shape.kv_heads > 1  # no rotation follows the value
        if self.shape.head_norms:  # after a norm of each head, no copy is needed
            q = self.linear(x, "query")
            k = self.linear(x, "key")
        else:
            q = self.linear(x, "query", splits=query_splits)
            k = self.linear(x, "key", folds=key_folds)
        v = self.linear(x, "value", splits=value_splits)
        if self.shape.head_norms:
            q, k = self.both_normed(q, k)
        if rotation:
            q, k = self.both_rotated(q, k, rotation)
        self.tape.where = "attention"
        if self.config.fused:
            mixed = self._fused_attention(q, k, v)
        else:
            mixed = self._attention(q, k, v)
        if has_heads:  # forward, too: a copy puts the results of each token's heads side by side
            mixed = self.copied(mixed)
        return self.linear(mixed, "out")

    # Queries and keys are held until both have a new value, as they are in the model.

    def both_normed(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Return the queries and the keys, each normalised head by head."""
        new_q = self.head_norm(q, "query norm")
        new_k = self.head_norm(k, "key norm")
        return new_q, new_k

    def both_rotated(self, q: Tensor, k: Tensor, rotation: Tensor) -> tuple[Tensor, Tensor]:
        """Return the queries and the keys, each rotated by the positions."""
        new_q = self.rotated(q, rotation, "query")
        new_k = self.rotated(k, rotation, "key")
        return new_q, new_k

    def rotated(self, x: Tensor, rotation: Tensor, where: str) -> Tensor:
        """Return x rotated by the positions: each half of the result has both halves of x in it.

        The names a and b are deleted where the model's expression frees these tensors.
        """
        tape = self.tape
        tape.where = f"{where}, rotated"
        half = x.nbytes // 2
        first, second = tape.views(x, "cat", half, half)
        a = self._scaled(first, rotation)  # first half × cosine
        b = self._scaled(second, rotation)  # second half × sine
        # The gradient of a is the result's own, and that of b is its negative.
        turned_first = tape.op("sub", (a, b), half, back=(PASS, "neg"))
        del a, b
        a = self._scaled(second, rotation)  # second half × cosine
        b = self._scaled(first, rotation)  # first half × sine
        turned_second = self.plus(a, b)
        del a, b
        return tape.op("cat", (turned_first, turned_second), x.nbytes, back=(PASS, PASS))

    def _scaled(self, x: Tensor, rotation: Tensor) -> Tensor:
        """Return x times the cosines or the sines in `rotation`, which need no gradient."""
        reads = x.nbytes + rotation.nbytes
        return self.tape.op("mul", (x,), x.nbytes, back="mul", saves=(rotation,), reads=reads)

    @property
    def _product_flops(self) -> int:
        """The FLOPs of one of attention's two products."""
        return 2 * self.tokens * self.sequence * self.shape.query_width

    def _fused_attention(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return attention made by one kernel, which has two products.

        In place of the scores, the kernel saves one number for each row of scores. So the backward
        pass's kernel has five products: the scores again, and two gradients for each of the two.
        """
        number_bytes = max(self.dtype_bytes, FP32_BYTES)  # in fp32, also in a model in 16 bits
        row_sums = number_bytes * self.tokens * self.shape.heads
        return self.tape.op(
            "scaled_dot_product_attention",
            (q, k, v),
            q.nbytes,
            row_sums,
            back="scaled_dot_product_attention_backward",
            saves=(q, k, v),
            keeps=slice(2),  # both results: the output, and the number for each row
            flops=2 * self._product_flops,
            flops_back=5 * self._product_flops,
        )

    def _attention(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return softmax(q kᵀ / √d) v, made by single operations.

        A batched product takes the heads of all sequences in one dimension. With several
        sequences, tokens and heads, an operand has to be copied for that. The queries that share a
        key become the rows of one matrix, which needs a copy if there are several tokens.
        """
        tape = self.tape
        in_groups = self.shape.kv_heads < self.shape.heads and self.sequence > 1
        # Several sequences, several tokens and several heads.
        by_head = min(self.config.batch, self.sequence, self.shape.kv_heads) > 1
        mask_bytes = self.dtype_bytes * self.sequence * self.sequence
        scores_bytes = self.dtype_bytes * self.tokens * self.shape.heads * self.sequence

        queries = self.copied(q) if in_groups else q
        # The copy in groups is by head already.
        scores = self._scores(
            queries, k, scores_bytes, copies_q=by_head and not in_groups, copies_k=by_head
        )
        full = tape.one("full", mask_bytes)
        mask = tape.one("triu", mask_bytes, reads=mask_bytes)  # hides the tokens that come later
        del full
        sums = tape.one("add", scores_bytes, reads=scores_bytes + mask_bytes)
        masked = scores._replace(storage=sums)  # with the node of `scores`: a mask has no gradient
        del sums  # from here on only `masked` holds the storage
        weights = tape.op(
            "_softmax",
            (masked,),
            scores_bytes,
            back="_softmax_backward_data",
            keeps=slice(1),  # its only result, the weights
        )
        del masked
        values = self.copied(v) if by_head else v
        mixed = self._batched(weights, values, q.nbytes)
        del values, mask  # the model, too, holds its mask until here
        was_copied = in_groups or by_head  # then its gradient arrives in another memory order
        return self.copied_back(mixed) if was_copied else mixed

    def _scores(
        self, q: Tensor, k: Tensor, nbytes: int, *, copies_q: bool, copies_k: bool
    ) -> Tensor:
        """Return q kᵀ / √d for each head, from copies of q and k where these are needed."""
        if copies_q:
            q = self.copied(q)
        if copies_k:
            k = self.copied(k)
        scores = self._batched(q, k, nbytes)
        del q, k  # the copies are freed before the division by √d
        return self.tape.op("mul", (scores,), nbytes, back="mul")

    def _batched(self, a: Tensor, b: Tensor, nbytes: int) -> Tensor:
        """Return a product of a and b for each head, all made by one kernel, of `nbytes` bytes."""
        return self.tape.op(
            "bmm",
            (b, a),  # in this order torch makes their gradients
            nbytes,
            back=("bmm", "bmm"),
            saves=(a, b),
            flops=self._product_flops,
        )
