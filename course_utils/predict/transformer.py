"""Transformers from their sizes: parameters, FLOPs, and the bytes that autograd keeps between forward and backward."""

from dataclasses import KW_ONLY, dataclass, replace

from course_utils.predict.operations import check_sizes, dtype_bytes
from course_utils.quantities import Ledger

FP32_BYTES = 4
INT64_BYTES = 8
ACTIVATION_DTYPES = ("fp64", "fp32", "fp16", "bf16")
# What a step computes once more: nothing, each layer, every second one, or in each layer what `kept_products` leaves.
Recompute = bool | str
RECOMPUTE: tuple[Recompute, ...] = (False, True, "every other layer", "every other product")
# A loss in one kernel of its own, or in one with the output's product, a few tokens at a time.
FusedLoss = bool | str
FUSED_LOSSES: tuple[FusedLoss, ...] = (False, True, "with output")


@dataclass(frozen=True)
class Transformer:
    """GPT-2's shape: biases, learned positions, the output tied to the embedding, a feed-forward of 4H.

    Llama's shape has none of them, but a gated feed-forward, RMSNorm, rotary positions, and fewer heads for
    keys and values than for queries.

    >>> gpt2 = Transformer(layers=12, width=768, heads=12, vocabulary=50257, context=1024)
    >>> gpt2.parameters
    124439808
    """

    layers: int
    width: int
    heads: int
    vocabulary: int
    context: int
    feed_forward: int | None = None
    biases: bool = True
    learned_positions: bool = True
    tied_output: bool = True
    _: KW_ONLY
    kv_heads: int | None = None  # as many as there are heads
    gated: bool = False  # SwiGLU: silu(x W1) × (x W2), then W3
    rms_norm: bool = False  # in place of LayerNorm: no mean, no bias
    rotary: bool = False
    head_width: int | None = None  # the width over the heads
    head_norms: bool = False  # queries and keys are normalised, head by head
    qkv_biases: bool = False  # queries, keys and values have biases, whatever the other matrices have

    def __post_init__(self) -> None:
        sizes = {name: value for name, value in vars(self).items() if not isinstance(value, bool | None)}
        check_sizes(**sizes)
        if not self.heads or (self.head_width is None and self.width % self.heads):
            raise ValueError(
                f"The width has to be a multiple of the heads; {self.width} is not one of {self.heads}."
            )
        if self.kv_heads is not None and (not self.kv_heads or self.heads % self.kv_heads):
            raise ValueError(
                "The heads have to be a multiple of those for keys and values; "
                f"{self.heads} is not one of {self.kv_heads}."
            )
        if self.rotary and self.query_width // self.heads % 2:
            raise ValueError(
                "Rotary positions turn pairs of numbers, so a head's width has to be even; "
                f"{self.query_width} / {self.heads} = {self.query_width // self.heads} is not."
            )

    @property
    def inner_width(self) -> int:
        return 4 * self.width if self.feed_forward is None else self.feed_forward

    @property
    def query_width(self) -> int:
        """Numbers in all queries of one position: the model's width, unless heads have a width of their own."""
        return self.width if self.head_width is None else self.heads * self.head_width

    @property
    def kv_width(self) -> int:
        """Numbers in all keys of one position, and as many in all values."""
        return self.query_width // self.heads * (self.heads if self.kv_heads is None else self.kv_heads)

    # Parameters.

    @property
    def block_weights(self) -> int:
        """2H² + 2H × keys' width + 2 (gated: 3) × H × feed-forward: the matrices of one layer; 12H² by default."""
        attention = 2 * self.width * (self.query_width + self.kv_width)
        return attention + (3 if self.gated else 2) * self.width * self.inner_width

    @property
    def parameters(self) -> int:
        return self.parameters_by_part.total

    @property
    def parameters_by_part(self) -> Ledger:
        """Embeddings, matrices, biases and normalisations; a tied output adds none."""
        h = self.width
        of_attention = self.query_width + 2 * self.kv_width
        of_others = (h + (2 if self.gated else 1) * self.inner_width + h) * self.biases
        biases = of_attention * (self.biases or self.qkv_biases) + of_others
        parts = {
            "token embedding": self.vocabulary * h,
            "positions": self.context * h if self.learned_positions else 0,
            "matrices": self.layers * self.block_weights,
            "biases": self.layers * biases,
            "normalisations": self.layers * self._parameters_of_norms + self._tensors_of_a_norm * h,
            "output": 0 if self.tied_output else self.vocabulary * h,
        }
        return Ledger(parts, unit="parameters")

    @property
    def parameters_of_output(self) -> int:
        """Behind the layers: the last normalisation, and an output matrix of its own."""
        return self._tensors_of_a_norm * self.width + self.parameters_by_part["output"]

    @property
    def parameters_of_a_layer(self) -> int:
        """The matrices, biases and normalisations of one layer."""
        parts = replace(self, layers=1).parameters_by_part
        return parts["matrices"] + parts["biases"] + self._parameters_of_norms

    @property
    def looked_up(self) -> int:
        """Parameters that no product reads: positions, and a token embedding that the output does not share."""
        parts = self.parameters_by_part
        return parts["positions"] + (0 if self.tied_output else parts["token embedding"])

    @property
    def _tensors_of_a_norm(self) -> int:
        return 2 if self.biases and not self.rms_norm else 1

    @property
    def _parameters_of_norms(self) -> int:
        """Parameters in the normalisations of one layer."""
        heads = 2 * self.query_width // self.heads if self.head_norms else 0
        return self._tensors_of_a_norm * (2 * self.width + heads)

    @property
    def tensors(self) -> int:
        """How many tensors the parameters are; most optimizers count steps for each."""
        matrices = 4 + (3 if self.gated else 2)
        biases = matrices if self.biases else 3 * self.qkv_biases
        block = matrices + biases + (4 if self.head_norms else 2) * self._tensors_of_a_norm
        around = 1 + self.learned_positions + self._tensors_of_a_norm + (not self.tied_output)
        return self.layers * block + around

    # FLOPs.

    def forward_flops(self, batch: int, sequence: int) -> Ledger:
        """2 for each weight of a product and token, and 4SH for attention's two products per layer and token."""
        check_sizes(batch=batch, sequence=sequence)
        tokens = batch * sequence
        products = {
            "matrices": 2 * tokens * self.layers * self.block_weights,
            "attention": 4 * tokens * sequence * self.query_width * self.layers,
            "output": 2 * tokens * self.vocabulary * self.width,
        }
        return Ledger(products, unit="FLOPs")

    def attention_share(self, sequence: int) -> float:
        """Attention's FLOPs over those of the layers' matrices: S/(6H) by default."""
        forward = self.forward_flops(1, sequence)
        return forward["attention"] / forward["matrices"]

    @property
    def even_sequence(self) -> int:
        """At which attention costs as much as the layers' matrices: block weights / 2H, and 6H by default.

        >>> Transformer(layers=12, width=768, heads=12, vocabulary=50257, context=1024).even_sequence / 768
        6.0
        """
        return self.block_weights // (2 * self.query_width)

    def training_flops(
        self, batch: int, sequence: int, recompute: bool = False, *, fused: bool = False
    ) -> Ledger:
        """Forward, a backward of twice that, and with activation checkpointing the layers' forward once more.

        A fused attention's backward computes the scores anew, as it has not stored them.
        """
        if isinstance(recompute, str):
            raise ValueError(
                f"FLOPs are predicted where every layer is recomputed or none; got {recompute!r}."
            )
        forward = self.forward_flops(batch, sequence)
        ledger = {"forward": forward.total, "backward": 2 * forward.total}
        if fused:
            ledger["scores again"] = forward["attention"] // 2
        if recompute:
            ledger["recompute"] = forward["matrices"] + forward["attention"]
        return Ledger(ledger, unit="FLOPs")

    # Bytes.

    def activation_bytes(
        self,
        batch: int,
        sequence: int,
        *,
        dtype: str = "fp32",
        fused: bool = False,
        fused_norm: bool = False,
        recompute: Recompute = False,
        loss: bool = False,
        fused_loss: FusedLoss = False,
    ) -> Ledger:
        """What autograd keeps of one forward pass, parameters aside: every input that a gradient needs, once.

        `fused` attention keeps one number for each row of scores in place of the row. Of an RMSNorm that is made of
        single operations, as torch does it on a CPU, two copies in fp32 are kept; of a `fused_norm`, done in one, its
        input. (LayerNorm is one kernel everywhere.) With `recompute` a layer keeps its input alone; "every other
        layer" does so for the second, the fourth and so on, and "every other product" keeps `kept_products`, too.
        `loss` is a cross-entropy in fp32. A `fused_loss` keeps the logits as the output gave them, and a number in fp32
        for each token. One "with output" never has all logits: it keeps the gradients of the output and its input. Exact for `models.Transformer` on a CPU, if the model is of that dtype throughout.

        >>> Transformer(1, 32, 4, 11, 64).activation_bytes(2, 64)["scores"]  # B × A × S² × 4 bytes
        131072
        """
        check_sizes(batch=batch, sequence=sequence)
        _check_ways(dtype, recompute, fused_loss)
        n, tokens = dtype_bytes(dtype), batch * sequence
        again = self.recomputed_layers(recompute)
        kept_layers = self.layers - again
        rows = batch * self.heads * sequence
        rows_of_heads = (self.heads + (self.kv_heads or self.heads)) * self.head_norms
        of_heads = rows_of_heads * self._kept_by_norm(self.query_width // self.heads, dtype, fused_norm)
        products = self.kept_products(fused) if recompute == "every other product" else 0
        kept = {
            "tokens": INT64_BYTES * tokens,
            "rotation": n * sequence * self.query_width // self.heads if self.rotary and self.layers else 0,
            "normalisations": tokens
            * ((2 * kept_layers + 1) * self.norm_bytes(dtype, fused_norm) + kept_layers * of_heads),
            "attention": kept_layers * tokens * (2 * self.query_width + 2 * self.kv_width) * n,
            "scores": kept_layers * rows * (max(n, FP32_BYTES) if fused else sequence * n),
            "feed-forward": kept_layers * tokens * (4 if self.gated else 2) * self.inner_width * n,
            "layers' inputs": again * tokens * self.width * n,
            "products": again
            * (tokens * products * n + (rows * max(n, FP32_BYTES) if products and fused else 0)),
            "loss": loss * self._loss_bytes(tokens, n, fused_loss),
        }
        return Ledger({part: b for part, b in kept.items() if part != "products" or b}, unit="bytes")

    def _loss_bytes(self, tokens: int, n: int, fused: FusedLoss) -> int:
        if fused == "with output":
            return n * self.width * (self.vocabulary + tokens)
        of_a_logit, of_a_row = (n, FP32_BYTES) if fused else (FP32_BYTES, 0)
        return tokens * (of_a_logit * self.vocabulary + of_a_row + INT64_BYTES) + (0 if fused else FP32_BYTES)

    def recomputed_layers(self, recompute: Recompute) -> int:
        """How many layers run once more on the way back."""
        return self.layers // 2 if recompute == "every other layer" else self.layers * bool(recompute)

    def kept_products(self, fused: bool) -> int:
        """Numbers that a layer keeps of a token, beside its input, where every other product is computed again.

        Kept are the first, third, fifth and seventh: queries, values, the first of the feed-forward, and what a gated
        one ends in. A fused attention's result is kept, too. That is what torchtitan calls selective, by operation.
        """
        attention = self.query_width * (1 + fused) + self.kv_width
        return attention + self.inner_width + self.gated * self.width

    def norm_bytes(self, dtype: str, fused: bool) -> int:
        """Bytes kept for one token: the normalisation's input and statistics, and its result, which the next product reads."""
        return self._kept_by_norm(self.width, dtype, fused) + dtype_bytes(dtype) * self.width

    def _kept_by_norm(self, width: int, dtype: str, fused: bool) -> int:
        """Bytes that the normalisation of so many numbers keeps, its result aside."""
        n = dtype_bytes(dtype)
        wide = max(n, FP32_BYTES)
        if not self.rms_norm:
            return n * width + 2 * n
        return n * width if fused else 2 * wide * width + wide  # the input, and what it is before its weight


def _check_ways(dtype: str, recompute: Recompute, fused_loss: FusedLoss) -> None:
    """Raise a sentence if one of the three does not exist."""
    if dtype not in ACTIVATION_DTYPES:
        raise ValueError(f"A model computes in {', '.join(ACTIVATION_DTYPES)}; got {dtype!r}.")
    for name, way, ways in (("recompute", recompute, RECOMPUTE), ("fused_loss", fused_loss, FUSED_LOSSES)):
        if way not in ways:
            raise ValueError(f"For {name} there are {', '.join(map(str, ways))}; got {way!r}.")
