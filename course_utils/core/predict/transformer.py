"""Transformers: what the accountant says of a `Model`, part by part, and what only a look inside a layer can say."""

from dataclasses import dataclass, fields, replace

from course_utils.core import accountant
from course_utils.core.accountant import Model
from course_utils.core.predict.operations import check_sizes, dtype_bytes, matmul_flops
from course_utils.core.say import Ledger

FP32_BYTES = accountant.BYTES["fp32"]
INT64_BYTES = accountant.BYTES["int64"]
ACTIVATION_DTYPES = ("fp64", "fp32", "fp16", "bf16")
SIZES = ("layers", "width", "heads", "kv_heads", "head_width", "inner", "vocabulary", "context")


@dataclass(frozen=True)
class Shape(Model):
    """The accountant's `Model`, and two things that change no parameter and no product, but what a step keeps.

    `shape_of` makes it of a `Model`, and `Transformer` of GPT-2's sizes.
    """

    rms_norm: bool = True  # otherwise LayerNorm, which takes the mean off, too
    rotary: bool = True  # queries and keys are turned by their positions

    def __post_init__(self) -> None:
        check_sizes(**{name: getattr(self, name) for name in SIZES})
        if not (self.heads and self.kv_heads) or self.heads % self.kv_heads:
            raise ValueError(
                "The heads have to be a multiple of those for keys and values; "
                f"{self.heads} is not one of {self.kv_heads}."
            )
        if self.rotary and self.head_width % 2:
            raise ValueError(
                "Rotary positions turn pairs of numbers, so a head's width has to be even; "
                f"{self.query_width} / {self.heads} = {self.head_width} is not."
            )
        if self.norm_vectors not in ((1,) if self.rms_norm else (1, 2)):
            raise ValueError(
                "RMSNorm has one vector, a weight; LayerNorm has that one, or a bias as well, two. "
                f"Got norm_vectors {self.norm_vectors!r}."
            )
        names = accountant.matrices(self)
        if not isinstance(self.biases, tuple) or not {*self.biases} <= {*names}:
            raise ValueError(
                f"biases names the matrices that have one, some of {', '.join(names)}; got {self.biases!r}."
            )

    @property
    def query_width(self) -> int:
        """Numbers in all queries of one position."""
        return self.heads * self.head_width

    @property
    def kv_width(self) -> int:
        """Numbers in all keys of one position, and as many in all values."""
        return self.kv_heads * self.head_width

    # Parameters.

    @property
    def parameters(self) -> int:
        return accountant.parameters(self)

    @property
    def block_weights(self) -> int:
        """The matrices of one layer; 12H² in a GPT-2."""
        return sum(inputs * outputs for inputs, outputs in accountant.matrices(self).values())

    @property
    def parameters_by_part(self) -> Ledger:
        """Embeddings, matrices, biases and normalisations; a tied output adds none."""
        biases = sum(accountant.matrices(self)[name][1] for name in self.biases)
        of_heads = (
            2 * self.head_width if self.head_norms else 0
        )  # weights alone, in a LayerNorm as well
        of_a_layer = 2 * self.norm_vectors * self.width + of_heads
        parts = {
            "token embedding": self.vocabulary * self.width,
            "positions": self.context * self.width if self.learned_positions else 0,
            "matrices": self.layers * self.block_weights,
            "biases": self.layers * biases,
            "normalisations": self.layers * of_a_layer + self.norm_vectors * self.width,
            "output": 0 if self.tied else self.vocabulary * self.width,
        }
        return Ledger(parts, unit="parameters")

    @property
    def parameters_of_output(self) -> int:
        """Behind the layers: the last normalisation, and an output matrix of its own."""
        return self.norm_vectors * self.width + self.parameters_by_part["output"]

    @property
    def parameters_of_a_layer(self) -> int:
        """What one more layer adds."""
        one, none = (accountant.parameters(replace(self, layers=layers)) for layers in (1, 0))
        return one - none

    @property
    def tensors(self) -> int:
        """How many tensors the parameters are; most optimizers count steps for each."""
        norms = 2 * self.norm_vectors + 2 * self.head_norms
        layer = len(accountant.matrices(self)) + len(self.biases) + norms
        around = 1 + self.learned_positions + self.norm_vectors + (not self.tied)
        return self.layers * layer + around

    # FLOPs.

    def forward_flops(self, batch: int, sequence: int) -> Ledger:
        """2 for each weight of a product and token; attention's two products for each layer are the rest."""
        check_sizes(batch=batch, sequence=sequence)
        tokens = batch * sequence
        layer = sum(matmul_flops(tokens, *shape) for shape in accountant.matrices(self).values())
        matrices = self.layers * layer
        output = matmul_flops(tokens, self.width, self.vocabulary)
        attention = accountant.forward_flops(self, batch, sequence) - matrices - output
        return Ledger(
            {"matrices": matrices, "attention": attention, "output": output}, unit="FLOPs"
        )

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
        input. (LayerNorm is one kernel everywhere.) With both, a layer keeps the accountant's `layer_bytes`, and
        LayerNorm's statistics. With `recompute` a layer keeps its input alone. `loss` is a cross-entropy in fp32.
        Exact for `models.Transformer` on a CPU, if the model is of that dtype throughout.

        >>> Transformer(1, 32, 4, 11, 64).activation_bytes(2, 64)["scores"]  # B × A × S² × 4 bytes
        131072
        """
        check_sizes(batch=batch, sequence=sequence)
        if dtype not in ACTIVATION_DTYPES:
            raise ValueError(f"A model computes in {', '.join(ACTIVATION_DTYPES)}; got {dtype!r}.")
        n = dtype_bytes(dtype)
        tokens = batch * sequence
        kept_layers = 0 if recompute else self.layers
        rows = batch * self.heads * sequence
        kept = {
            "tokens": INT64_BYTES * tokens,
            "rotation": n * sequence * self.head_width if self.rotary and self.layers else 0,
            "normalisations": tokens * self._kept_by_norms(kept_layers, dtype, fused_norm),
            "attention": kept_layers * tokens * (2 * self.query_width + 2 * self.kv_width) * n,
            "scores": kept_layers * rows * (max(n, FP32_BYTES) if fused else sequence * n),
            "feed-forward": kept_layers * tokens * (4 if self.gated else 2) * self.inner * n,
            "layers' inputs": (self.layers - kept_layers) * tokens * self.width * n,
            "loss": loss * (tokens * (FP32_BYTES * self.vocabulary + INT64_BYTES) + FP32_BYTES),
        }
        return Ledger(kept, unit="bytes")

    def _kept_by_norms(self, kept_layers: int, dtype: str, fused: bool) -> int:
        """Bytes of one token: two normalisations a layer and those of its heads, and one behind the layers."""
        result = dtype_bytes(dtype) * self.width  # which the next product reads
        of_one = self._kept_by_norm(self.width, dtype, fused) + result
        normed_heads = (self.heads + self.kv_heads) * self.head_norms
        of_heads = normed_heads * self._kept_by_norm(self.head_width, dtype, fused)
        return (2 * kept_layers + 1) * of_one + kept_layers * of_heads

    def _kept_by_norm(self, width: int, dtype: str, fused: bool) -> int:
        """Bytes that the normalisation of so many numbers keeps, its result aside."""
        n = dtype_bytes(dtype)
        wide = max(n, FP32_BYTES)
        if not self.rms_norm:
            return n * width + 2 * n
        return (
            n * width if fused else 2 * wide * width + wide
        )  # the input, and what it is before its weight


def shape_of(m: Model) -> Shape:
    """The model's shape: RMSNorm if a normalisation has one vector, rotary positions if none are learned.

    >>> shape_of(Model(1, 8, 2, 1, 4, 16, vocabulary=11, context=8)).kv_width
    4
    """
    if isinstance(m, Shape):
        return m
    said = {field.name: getattr(m, field.name) for field in fields(Model)}
    return Shape(**said, rms_norm=m.norm_vectors == 1, rotary=not m.learned_positions)


def Transformer(  # noqa: N802  it makes an object, and other material relies on its name
    layers: int,
    width: int,
    heads: int,
    vocabulary: int,
    context: int,
    feed_forward: int | None = None,
    biases: bool = True,
    learned_positions: bool = True,
    tied_output: bool = True,
    *,
    kv_heads: int | None = None,
    gated: bool = False,
    rms_norm: bool = False,
    rotary: bool = False,
    head_width: int | None = None,
    head_norms: bool = False,
    qkv_biases: bool = False,
) -> Shape:
    """GPT-2's shape: biases, learned positions, the output tied to the embedding, a feed-forward of 4H.

    Llama's shape has none of them, but a gated feed-forward, RMSNorm, rotary positions, and fewer heads for
    keys and values than for queries. With `qkv_biases`, those three have biases, whatever the others have.

    >>> gpt2 = Transformer(layers=12, width=768, heads=12, vocabulary=50257, context=1024)
    >>> gpt2.parameters
    124439808
    """
    sizes = _inner_sizes(width, heads, kv_heads, head_width, feed_forward)
    vectors = 2 if biases and not rms_norm else 1
    norms = {"rms_norm": rms_norm, "norm_vectors": vectors, "head_norms": head_norms}
    around = {"vocabulary": vocabulary, "context": context, "tied": tied_output}
    positions = {"learned_positions": learned_positions, "rotary": rotary}
    every = sizes | norms | around | positions
    shape = Shape(layers=layers, width=width, heads=heads, gated=gated, **every)
    names = tuple(accountant.matrices(shape))
    if biases:
        return replace(shape, biases=names)
    return replace(shape, biases=names[:3]) if qkv_biases else shape


def _inner_sizes(
    width: int, heads: int, kv_heads: int | None, head_width: int | None, feed_forward: int | None
) -> dict[str, int]:
    """The sizes inside a layer; where one is None, that of a GPT-2."""
    given = {"width": width, "heads": heads, "feed_forward": feed_forward}
    check_sizes(**{name: size for name, size in given.items() if size is not None})
    if not heads or (head_width is None and width % heads):
        raise ValueError(
            f"The width has to be a multiple of the heads; {width} is not one of {heads}."
        )
    return {
        "kv_heads": heads if kv_heads is None else kv_heads,
        "head_width": width // heads if head_width is None else head_width,
        "inner": 4 * width if feed_forward is None else feed_forward,
    }
