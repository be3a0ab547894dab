"""Transformers from their sizes: parameters, FLOPs, and the bytes that autograd keeps between forward and backward."""

from dataclasses import KW_ONLY, dataclass, replace

from course_utils.core.predict.operations import check_sizes, dtype_bytes
from course_utils.core.say import Ledger

FP32_BYTES = 4
INT64_BYTES = 8
ACTIVATION_DTYPES = ("fp64", "fp32", "fp16", "bf16")


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
        recompute: bool = False,
        loss: bool = False,
    ) -> Ledger:
        """What autograd keeps of one forward pass, parameters aside: every input that a gradient needs, once.

        `fused` attention keeps one number for each row of scores in place of the row. Of an RMSNorm that is made of
        single operations, as torch does it on a CPU, two copies in fp32 are kept; of a `fused_norm`, done in one, its
        input. (LayerNorm is one kernel everywhere.) With `recompute` a layer keeps its input alone. `loss` is a
        cross-entropy in fp32. Exact for `models.Transformer` on a CPU, if the model is of that dtype throughout.

        >>> Transformer(1, 32, 4, 11, 64).activation_bytes(2, 64)["scores"]  # B × A × S² × 4 bytes
        131072
        """
        check_sizes(batch=batch, sequence=sequence)
        if dtype not in ACTIVATION_DTYPES:
            raise ValueError(f"A model computes in {', '.join(ACTIVATION_DTYPES)}; got {dtype!r}.")
        n, tokens, kept_layers = dtype_bytes(dtype), batch * sequence, 0 if recompute else self.layers
        rows = batch * self.heads * sequence
        rows_of_heads = (self.heads + (self.kv_heads or self.heads)) * self.head_norms
        of_heads = rows_of_heads * self._kept_by_norm(self.query_width // self.heads, dtype, fused_norm)
        of_a_norm = self._kept_by_norm(self.width, dtype, fused_norm) + n * self.width  # its result is read
        kept = {
            "tokens": INT64_BYTES * tokens,
            "rotation": n * sequence * self.query_width // self.heads if self.rotary and self.layers else 0,
            "normalisations": tokens * ((2 * kept_layers + 1) * of_a_norm + kept_layers * of_heads),
            "attention": kept_layers * tokens * (2 * self.query_width + 2 * self.kv_width) * n,
            "scores": kept_layers * rows * (max(n, FP32_BYTES) if fused else sequence * n),
            "feed-forward": kept_layers * tokens * (4 if self.gated else 2) * self.inner_width * n,
            "layers' inputs": (self.layers - kept_layers) * tokens * self.width * n,
            "loss": loss * (tokens * (FP32_BYTES * self.vocabulary + INT64_BYTES) + FP32_BYTES),
        }
        return Ledger(kept, unit="bytes")

    def _kept_by_norm(self, width: int, dtype: str, fused: bool) -> int:
        """Bytes that the normalisation of so many numbers keeps, its result aside."""
        n = dtype_bytes(dtype)
        wide = max(n, FP32_BYTES)
        if not self.rms_norm:
            return n * width + 2 * n
        return n * width if fused else 2 * wide * width + wide  # the input, and what it is before its weight
