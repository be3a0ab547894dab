"""A layer's feed-forward on a tape: an ordinary one, or a mixture of experts."""

from course_utils.core.predict.layer_operations import LayerOperations
from course_utils.core.predict.storages import PASS, Back, Tensor
from course_utils.core.predict.transformer import INT64_BYTES


class FeedForwards(LayerOperations):
    """The operations of feed-forwards, as the class LayerOperations has those of attention.

    A mixture is written as in `models.mixture.Experts`: its experts work one after the other, each
    on a copy of its tokens' rows.
    """

    def feed_forward(self, x: Tensor) -> Tensor:
        """Return the result of the feed-forward of the layer that the tape is at."""
        tokens_of_experts = self.config.tokens_of_experts(self.tape.layer)
        if tokens_of_experts:
            return self._experts(x, tokens_of_experts)
        return self._ordinary(x)

    def _ordinary(self, x: Tensor, of: str = "", *, flat: bool = False) -> Tensor:
        """Return the result of one feed-forward, which is gated, or has GELU.

        `of` is what the names of its matrices begin with, such as "shared ". `flat` is as in
        `linear`.
        """
        if self.shape.gated:
            inner = self._gated(x, of, flat)
        else:
            inner = self.linear(x, f"{of}up", flat=flat)
            inner = self.pointwise("gelu", inner)
        return self.linear(inner, f"{of}down", flat=flat)

    def _gated(self, x: Tensor, of: str, flat: bool) -> Tensor:
        """Return silu(x Wg) × (x W1), where Wg is the matrix "gate", and W1 is "up"."""
        gate = self.linear(x, f"{of}gate", flat=flat)
        gate = self.pointwise("silu", gate)
        up = self.linear(x, f"{of}up", flat=flat)
        self.tape.where = f"{of}gate × up"
        return self.times(gate, up)

    def _experts(self, x: Tensor, tokens_of_experts: tuple[int, ...]) -> Tensor:
        """Return the mixture of the experts' results, with that of a shared expert if there is one.

        A name holds what the name in `Experts.forward` holds.
        """
        tape = self.tape
        chances = self._chances(x)
        shares, chosen = self._picks(chances)
        mixed = Tensor(tape.one("zeros_like", x.nbytes), x.nbytes)
        for tokens in tokens_of_experts:
            rows = self._rows_of_expert(chosen, tokens)
            its_shares = self._picked(shares, rows, self.dtype_bytes * tokens)
            result = self._expert(x, rows, its_shares)
            mixed = self._added(mixed, result, rows)
        if self.shape.mixture.shared_inner:
            mixed = self._plus_shared(mixed, x)
        return mixed

    def _chances(self, x: Tensor) -> Tensor:
        """Return the share of each token that the router would give each expert."""
        logits = self.linear(x, "router", flat=True)
        back = "_softmax_backward_data"
        return self.tape.op("_softmax", (logits,), logits.nbytes, back=back, keeps=slice(1))

    def _picks(self, chances: Tensor) -> tuple[Tensor, Tensor]:
        """Return the largest chances of each token, which are its shares, and whose they are."""
        tape = self.tape
        picked = self.tokens * self.shape.mixture.used
        shares_bytes = self.dtype_bytes * picked
        chosen_bytes = INT64_BYTES * picked
        # The gradient of a share goes to its place among zeros: "scatter" puts it there.
        reads = shares_bytes + chosen_bytes + chances.nbytes
        back = Back("scatter", (chances.nbytes,), reads, onto_zeros=True)
        shares, chosen = tape.run("topk", shares_bytes, chosen_bytes, reads=chances.nbytes)
        node = tape.node((chances,), [back], (chosen,))
        return Tensor(shares, shares_bytes, node), Tensor(chosen, chosen_bytes)

    def _rows_of_expert(self, chosen: Tensor, tokens: int) -> Tensor:
        """Return two numbers for each token of an expert: its row and its column in `chosen`."""
        tape = self.tape
        tape.where = "the expert's tokens"
        is_its_own = tape.one("eq", chosen.nbytes // INT64_BYTES, reads=chosen.nbytes)  # bools
        nbytes = 2 * INT64_BYTES * tokens
        return Tensor(tape.one("nonzero", nbytes, reads=is_its_own.nbytes), nbytes)

    def _picked(self, x: Tensor, rows: Tensor, nbytes: int) -> Tensor:
        """Return a copy of the expert's rows of x, or of its numbers; `nbytes` are those of it.

        Its gradient is added to zeros, at the places that `rows` names.
        """
        back = Back("index_put", (x.nbytes,), nbytes + rows.nbytes + x.nbytes, onto_zeros=True)
        reads = nbytes + rows.nbytes
        return self.tape.op("index", (x,), nbytes, back=[back], saves=(rows,), reads=reads)

    def _expert(self, x: Tensor, rows: Tensor, its_shares: Tensor) -> Tensor:
        """Return the result of an expert, each row times the share that the token gives it."""
        tokens = rows.nbytes // (2 * INT64_BYTES)
        nbytes = self.dtype_bytes * tokens * self.shape.width
        # The rows have no name here, so that they are freed with the last use of them.
        made = self._ordinary(self._picked(x, rows, nbytes), "experts' ", flat=True)
        tape = self.tape
        tape.where = "expert × share"
        # A share is one number for a whole row. So its gradient is a sum over the row.
        sums_to = its_shares.nbytes if self.shape.width > 1 else None
        back = Back("mul", (made.nbytes,), 2 * made.nbytes, sums_to=sums_to)
        both = (made, its_shares)
        return tape.op("mul", both, made.nbytes, back=("mul", back), saves=both)

    def _added(self, mixed: Tensor, result: Tensor, rows: Tensor) -> Tensor:
        """Return `mixed` with the expert's result added to the rows of its tokens."""
        self.tape.where = "mixed + expert"
        edges = (mixed, result)
        back = (PASS, "index_select")
        if mixed.node is None and not self.tape.rerun:  # the zeros before the first expert
            edges = (result,)
            back = ("index_select",)
        return self.tape.op("index_add", edges, mixed.nbytes, back=back, saves=(result, rows))

    def _plus_shared(self, mixed: Tensor, x: Tensor) -> Tensor:
        """Return `mixed` plus the result of the expert that every token uses."""
        made = self._ordinary(x, "shared ", flat=True)
        self.tape.where = "mixed + shared"
        return self.plus(mixed, made)
