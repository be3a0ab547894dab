"""Transformers from their sizes: parameters, FLOPs, and the bytes that autograd keeps between forward and backward."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace

from course_utils.predict.operations import check_sizes, dtype_bytes
from course_utils.quantities import Ledger

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

    def __post_init__(self) -> None:
        sizes = {name: value for name, value in vars(self).items() if not isinstance(value, bool | None)}
        check_sizes(**sizes)
        if not self.heads or self.width % self.heads:
            raise ValueError(
                f"The width has to be a multiple of the heads; {self.width} is not one of {self.heads}."
            )
        if self.kv_heads is not None and (not self.kv_heads or self.heads % self.kv_heads):
            raise ValueError(
                "The heads have to be a multiple of those for keys and values; "
                f"{self.heads} is not one of {self.kv_heads}."
            )
        if self.rotary and self.width // self.heads % 2:
            raise ValueError(
                "Rotary positions turn pairs of numbers, so a head's width has to be even; "
                f"{self.width} / {self.heads} = {self.width // self.heads} is not."
            )

    @property
    def inner_width(self) -> int:
        return 4 * self.width if self.feed_forward is None else self.feed_forward

    @property
    def kv_width(self) -> int:
        """Of all keys, or all values, of one position."""
        return self.width // self.heads * (self.heads if self.kv_heads is None else self.kv_heads)

    # Parameters.

    @property
    def block_weights(self) -> int:
        """2H² + 2H × keys' width + 2 (gated: 3) × H × feed-forward: the matrices of one layer; 12H² by default."""
        attention = 2 * self.width**2 + 2 * self.width * self.kv_width
        return attention + (3 if self.gated else 2) * self.width * self.inner_width

    @property
    def parameters(self) -> int:
        return self.parameters_by_part.total

    @property
    def parameters_by_part(self) -> Ledger:
        """Embeddings, matrices, biases and normalisations; a tied output adds none."""
        h = self.width
        one_layers = h + 2 * self.kv_width + h + (2 if self.gated else 1) * self.inner_width + h
        parts = {
            "token embedding": self.vocabulary * h,
            "positions": self.context * h if self.learned_positions else 0,
            "matrices": self.layers * self.block_weights,
            "biases": self.layers * one_layers if self.biases else 0,
            "normalisations": (2 * self.layers + 1) * self._tensors_of_a_norm * h,
            "output": 0 if self.tied_output else self.vocabulary * h,
        }
        return Ledger(parts, unit="parameters")

    @property
    def parameters_of_output(self) -> int:
        """Behind the layers: the last normalisation, and an output matrix of its own."""
        return self._tensors_of_a_norm * self.width + self.parameters_by_part["output"]

    @property
    def parameters_of_a_layer(self) -> int:
        """Its matrices, biases and normalisations."""
        parts = replace(self, layers=1).parameters_by_part
        return parts["matrices"] + parts["biases"] + 2 * self._tensors_of_a_norm * self.width

    @property
    def looked_up(self) -> int:
        """Parameters that no product reads: positions, and a token embedding that the output does not share."""
        parts = self.parameters_by_part
        return parts["positions"] + (0 if self.tied_output else parts["token embedding"])

    @property
    def _tensors_of_a_norm(self) -> int:
        return 2 if self.biases and not self.rms_norm else 1

    @property
    def tensors(self) -> int:
        """How many tensors the parameters are; most optimizers count steps for each."""
        matrices = 4 + (3 if self.gated else 2)
        block = matrices * (2 if self.biases else 1) + 2 * self._tensors_of_a_norm
        around = 1 + self.learned_positions + self._tensors_of_a_norm + (not self.tied_output)
        return self.layers * block + around

    # FLOPs.

    def forward_flops(self, batch: int, sequence: int) -> Ledger:
        """2 for each weight of a product and token, and 4SH for attention's two products per layer and token."""
        check_sizes(batch=batch, sequence=sequence)
        tokens = batch * sequence
        products = {
            "matrices": 2 * tokens * self.layers * self.block_weights,
            "attention": 4 * tokens * sequence * self.width * self.layers,
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
        return self.block_weights // (2 * self.width)

    def training_flops(
        self, batch: int, sequence: int, recompute: bool = False, *, fused: bool = False
    ) -> Ledger:
        """Forward, a backward of twice that, and with activation checkpointing the layers' forward once more.

        A fused attention's backward computes the scores anew, as it has not stored them.
        """
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
        n, tokens = dtype_bytes(dtype), batch * sequence
        kept_layers = 0 if recompute else self.layers
        rows = batch * self.heads * sequence
        kept = {
            "tokens": INT64_BYTES * tokens,
            "rotation": n * sequence * self.width // self.heads if self.rotary and self.layers else 0,
            "normalisations": (2 * kept_layers + 1) * tokens * self.norm_bytes(dtype, fused_norm),
            "attention": kept_layers * tokens * (2 * self.width + 2 * self.kv_width) * n,
            "scores": kept_layers * rows * (max(n, FP32_BYTES) if fused else sequence * n),
            "feed-forward": kept_layers * tokens * (4 if self.gated else 2) * self.inner_width * n,
            "layers' inputs": self.layers * tokens * self.width * n if recompute else 0,
            "loss": tokens * (FP32_BYTES * self.vocabulary + INT64_BYTES) + FP32_BYTES if loss else 0,
        }
        return Ledger(kept, unit="bytes")

    def norm_bytes(self, dtype: str, fused: bool) -> int:
        """Of one token: the normalisation's input and statistics, and its result, which the next product reads."""
        n = dtype_bytes(dtype)
        wide = max(n, FP32_BYTES)
        if not self.rms_norm:
            own = n * self.width + 2 * n
        elif fused:
            own = n * self.width
        else:
            own = 2 * wide * self.width + wide  # the input, and what it is before its weight
        return own + n * self.width


def _llama(layers: int, width: int, heads: int, feed_forward: int) -> Transformer:
    return Transformer(
        *(layers, width, heads, 128256, 8192, feed_forward),
        biases=False,
        learned_positions=False,
        tied_output=False,
        kv_heads=8,
        gated=True,
        rms_norm=True,
        rotary=True,
    )


MODELS: Mapping[str, Transformer] = {
    "GPT-2 small": Transformer(12, 768, 12, 50257, 1024),
    "GPT-2 medium": Transformer(24, 1024, 16, 50257, 1024),
    "GPT-2 large": Transformer(36, 1280, 20, 50257, 1024),
    "GPT-2 XL": Transformer(48, 1600, 25, 50257, 1024),
    "GPT-3": Transformer(96, 12288, 96, 50257, 2048),
    "Llama 3 8B": _llama(32, 4096, 32, 14336),
    "Llama 3 70B": _llama(80, 8192, 64, 28672),
    "Llama 3.1 405B": _llama(126, 16384, 128, 53248),
}
