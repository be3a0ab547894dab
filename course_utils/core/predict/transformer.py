"""Transformers: the accountant's parameters and FLOPs of a `Model`, part by part.

The accountant does not know what autograd keeps where kernels are not fused; this module does.
"""

from dataclasses import dataclass, fields, replace

from course_utils.core import accountant
from course_utils.core.accountant import Model
from course_utils.core.predict.operations import check_sizes, dtype_bytes, matmul_flops
from course_utils.core.say import Ledger

FP32_BYTES = accountant.BYTES["fp32"]
INT64_BYTES = accountant.BYTES["int64"]
ACTIVATION_DTYPES = ("fp64", "fp32", "fp16", "bf16")  # in which a model computes
# The fields of a Shape that have to be whole numbers from 0 up.
SIZES = ("layers", "width", "heads", "kv_heads", "head_width", "inner", "vocabulary", "context")


@dataclass(frozen=True)
class Shape(Model):
    """The accountant's `Model`, and two fields more.

    These two change no number of parameters and no matrix product, but they change what a step
    keeps. `shape_of` makes a Shape from a `Model`, and `Transformer` makes one from sizes.
    """

    rms_norm: bool = True  # otherwise LayerNorm, which subtracts the mean, too
    rotary: bool = True  # queries and keys are turned by their positions

    def __post_init__(self) -> None:
        """Raise a ValueError, with the reason, if there is no transformer of these sizes."""
        sizes = {name: getattr(self, name) for name in SIZES}
        check_sizes(**sizes)
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
        possible_vectors = (1,) if self.rms_norm else (1, 2)  # a weight, or a weight and a bias
        if self.norm_vectors not in possible_vectors:
            raise ValueError(
                "RMSNorm has one vector, a weight; LayerNorm has that one, or a bias as well, two. "
                f"Got norm_vectors {self.norm_vectors!r}."
            )
        self._check_mixture()
        names = accountant.matrices(self)
        # `<=` asks whether the first set is part of the second.
        if not isinstance(self.biases, tuple) or not {*self.biases} <= {*names}:
            raise ValueError(
                f"biases names the matrices that have one, some of {', '.join(names)}; "
                f"got {self.biases!r}."
            )

    def _check_mixture(self) -> None:
        """Raise a ValueError, with the reason, if there is no such mixture in these layers."""
        mixture = self.mixture
        if mixture is None:
            return
        if not 1 <= mixture.used <= mixture.experts:
            raise ValueError(
                f"A token goes to 1 or more of a layer's {mixture.experts} experts; "
                f"got {mixture.used}."
            )
        if mixture.dense_layers > self.layers:
            raise ValueError(
                f"Of {self.layers} layers, {mixture.dense_layers} cannot be without experts."
            )

    @property
    def query_width(self) -> int:
        """How many numbers all queries of one position have."""
        return self.heads * self.head_width

    @property
    def kv_width(self) -> int:
        """How many numbers all keys of one position have; its values have as many."""
        return self.kv_heads * self.head_width

    # Parameters.

    @property
    def parameters(self) -> int:
        """How many parameters the model has, with all experts of a mixture."""
        return accountant.stored_parameters(self)

    @property
    def block_weights(self) -> int:
        """How many weights the matrices of one layer have; 12H² in a GPT-2."""
        self.refuse_mixture("The weights of one layer")
        return sum(inputs * outputs for inputs, outputs in accountant.matrices(self).values())

    @property
    def parameters_by_part(self) -> Ledger:
        """The parameters of embeddings, matrices, biases, normalisations and the output.

        A tied output adds none. The matrices are those of all experts and routers, too.
        """
        weights = 0
        biases = 0
        for group in self._layer_matrices:
            weights += group.stored * group.size
            biases += group.stored * (group.parameters - group.size)
        norm = self.norm_vectors * self.width
        norms_of_a_layer = 2 * norm
        if self.head_norms:
            norms_of_a_layer += 2 * self.head_width  # no bias, even where the other norms have one
        embedding = self.vocabulary * self.width
        parts = {
            "token embedding": embedding,
            "positions": self.context * self.width if self.learned_positions else 0,
            "matrices": weights,
            "biases": biases,
            "normalisations": self.layers * norms_of_a_layer + norm,
            "output": 0 if self.tied else embedding,
        }
        return Ledger(parts, unit="parameters")

    @property
    def parameters_of_output_and_last_norm(self) -> int:
        """Parameters of the last normalisation, and of the output matrix if it is not tied."""
        return self.norm_vectors * self.width + self.parameters_by_part["output"]

    @property
    def _layer_matrices(self) -> list[accountant.Matrices]:
        """The matrices of all layers: all but the output."""
        table = accountant.all_matrices(self)
        return [group for name, group in table.items() if name != "output"]

    @property
    def parameters_of_a_layer(self) -> int:
        """The parameters that one more layer adds, which is a mixture if the model has one."""
        mixture = replace(self.mixture, dense_layers=0) if self.mixture else None
        with_one = accountant.stored_parameters(replace(self, layers=1, mixture=mixture))
        return with_one - self.parameters_outside_layers

    @property
    def parameters_outside_layers(self) -> int:
        """The parameters of the embeddings, the last normalisation and the output."""
        mixture = replace(self.mixture, dense_layers=0) if self.mixture else None
        return accountant.stored_parameters(replace(self, layers=0, mixture=mixture))

    @property
    def tensors(self) -> int:
        """How many tensors hold the parameters; most optimizers count steps for each tensor."""
        of_matrices = sum(group.stored * (1 + group.bias) for group in self._layer_matrices)
        of_a_layer = 2 * self.norm_vectors  # a layer has two norms, each of 1 or 2 vectors
        if self.head_norms:
            of_a_layer += 2  # one for the queries, one for the keys
        around = 1 + self.norm_vectors  # the embedding, and the last normalisation
        if self.learned_positions:
            around += 1
        if not self.tied:
            around += 1  # the output's own matrix
        return of_matrices + self.layers * of_a_layer + around

    def refuse_mixture(self, what: str) -> None:
        """Raise a ValueError, which says what is not predicted, if the model has experts."""
        if self.mixture:
            raise ValueError(f"{what} is predicted here of models without experts alone.")

    # FLOPs.

    def forward_flops(self, batch: int, sequence: int) -> Ledger:
        """Return FLOPs by part: two for each weight and token, and two products in each attention.

        The accountant gives the total only. What its total has beyond the weights' FLOPs is
        attention. Of a mixture, only the experts that a token uses work on it.
        """
        check_sizes(batch=batch, sequence=sequence)
        tokens = batch * sequence
        matrices = 0  # FLOPs
        for group in self._layer_matrices:
            matrices += group.used * matmul_flops(tokens, group.inputs, group.outputs)
        output = matmul_flops(tokens, self.width, self.vocabulary)
        all_pairs = replace(self, window=0, window_layers=0)
        whole = accountant.active_forward_flops(all_pairs, batch, sequence)
        attention = whole - matrices - output
        by_part = {"matrices": matrices, "attention": attention, "output": output}
        return Ledger(by_part, unit="FLOPs")

    def training_flops(
        self, batch: int, sequence: int, recompute: bool = False, *, fused: bool = False
    ) -> Ledger:
        """Return the FLOPs of a step: forward, and backward with twice as many.

        With `recompute`, the layers' forward runs once more. The backward pass of `fused` attention
        computes the scores again, because they are not stored.
        """
        if isinstance(recompute, str):  # such as "every other layer", which `timeline` knows
            raise ValueError(
                f"FLOPs are predicted where every layer is recomputed or none; got {recompute!r}."
            )
        forward = self.forward_flops(batch, sequence)
        ledger = {"forward": forward.total, "backward": 2 * forward.total}
        if fused:
            ledger["scores again"] = forward["attention"] // 2  # one of attention's two products
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
        """Return the bytes that autograd keeps of one forward pass: each needed input, once.

        Parameters are not counted. `fused` attention keeps one number in place of each row of
        scores. A `fused_norm` is one kernel, as LayerNorm always is, and keeps its input. RMSNorm
        in single operations, as on a CPU, keeps two copies in fp32. With both flags, a layer keeps
        the accountant's `layer_bytes` plus LayerNorm's statistics; with `recompute`, its input
        alone. `loss` adds a cross-entropy in fp32. Exact for `models.Transformer` on a CPU.

        >>> Transformer(1, 32, 4, 11, 64).activation_bytes(2, 64)["scores"]  # B × A × S² × 4 bytes
        131072
        """
        check_sizes(batch=batch, sequence=sequence)
        if dtype not in ACTIVATION_DTYPES:
            raise ValueError(f"A model computes in {', '.join(ACTIVATION_DTYPES)}; got {dtype!r}.")
        number_bytes = dtype_bytes(dtype)
        tokens = batch * sequence
        kept_layers = 0 if recompute else self.layers
        recomputed_layers = self.layers - kept_layers
        rotated_width = self.head_width if self.rotary and self.layers else 0
        kept = {
            "tokens": INT64_BYTES * tokens,
            "rotation": number_bytes * sequence * rotated_width,  # cosine and sine of each pair
            "normalisations": tokens * self._kept_by_norms(kept_layers, dtype, fused_norm),
        }
        for part, of_a_token in self._kept_in_layer(sequence, number_bytes, fused).items():
            kept[part] = kept_layers * tokens * of_a_token
        kept["layers' inputs"] = recomputed_layers * tokens * self.width * number_bytes
        kept["loss"] = self._kept_by_loss(tokens) if loss else 0
        return Ledger(kept, unit="bytes")

    def _kept_in_layer(self, sequence: int, number_bytes: int, fused: bool) -> dict[str, int]:
        """Return the bytes that a layer keeps for one token, not counting its normalisations."""
        self.refuse_mixture("What autograd keeps")
        # Queries, keys, values, and attention's result, which is as wide as the queries.
        queries_to_result = 2 * self.query_width + 2 * self.kv_width
        if fused:  # one number in place of the row, in fp32 or more
            row_of_scores = max(number_bytes, FP32_BYTES)
        else:
            row_of_scores = sequence * number_bytes
        # With a gate: the gate, its activation, up and their product; else up and its activation.
        inside = 4 * self.inner if self.gated else 2 * self.inner
        return {
            "attention": queries_to_result * number_bytes,
            "scores": self.heads * row_of_scores,
            "feed-forward": inside * number_bytes,
        }

    def _kept_by_loss(self, tokens: int) -> int:
        """Return the bytes that a mean cross-entropy of `tokens` tokens keeps."""
        logarithms = FP32_BYTES * self.vocabulary  # of one token's probabilities
        target = INT64_BYTES  # the token that comes next
        # Torch keeps the divisor of the mean, too: the number of tokens, as one number in fp32.
        return tokens * (logarithms + target) + FP32_BYTES

    def _kept_by_norms(self, kept_layers: int, dtype: str, fused: bool) -> int:
        """Return the bytes that normalisations keep for one token.

        Each of `kept_layers` layers has two that are as wide as the model, and the last one stands
        before the output. These keep their results, too, for the product that follows. A layer may
        also normalise its queries and keys, whose results `_kept_in_layer` counts.
        """
        result = dtype_bytes(dtype) * self.width  # which the next product reads
        of_one = self._kept_by_norm(self.width, dtype, fused) + result
        of_a_layer = 2 * of_one
        if self.head_norms:
            heads = self.heads + self.kv_heads
            of_a_layer += heads * self._kept_by_norm(self.head_width, dtype, fused)
        return kept_layers * of_a_layer + of_one

    def _kept_by_norm(self, width: int, dtype: str, fused: bool) -> int:
        """Return the bytes that normalising a row of `width` numbers keeps, without its result."""
        number_bytes = dtype_bytes(dtype)
        if not self.rms_norm:  # the input, the mean, 1 / standard deviation
            return number_bytes * width + 2 * number_bytes
        if fused:
            return number_bytes * width  # the input
        wide = max(number_bytes, FP32_BYTES)  # single operations compute in fp32 or more
        return 2 * wide * width + wide  # the input, the normalised numbers, and 1 / RMS


def shape_of(m: Model) -> Shape:
    """Return the model's shape, with two fields that the accountant's `Model` does not have.

    The shape has RMSNorm if a normalisation has one vector, and rotary positions if no positions
    are learned. Windows are not predicted here, so if a layer has one, the context ends with it. A
    model with latent attention, sinks, or four normalisations in a layer gets a ValueError.

    >>> shape_of(Model(1, 8, 2, 1, 4, 16, vocabulary=11, context=8)).kv_width
    4
    """
    if isinstance(m, Shape):
        return m
    if not accountant.attention_is_usual(m):
        raise ValueError(
            "Operation by operation, models are predicted without latent attention, sinks, or more "
            "than two normalisations in a layer."
        )
    model = {field.name: getattr(m, field.name) for field in fields(Model)}
    if m.window:
        model["context"] = min(m.context, m.window)
    return Shape(**model, rms_norm=m.norm_vectors == 1, rotary=not m.learned_positions)


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
    """Return a transformer's shape. The defaults are GPT-2's, with a feed-forward of 4 × width.

    A Llama has `gated`, `rms_norm`, `rotary`, and no `biases`, `learned_positions`, `tied_output`.

    >>> gpt2 = Transformer(layers=12, width=768, heads=12, vocabulary=50257, context=1024)
    >>> gpt2.parameters
    124439808
    """
    sizes = _layer_sizes(width, heads, kv_heads, head_width, feed_forward)
    kinds = {"gated": gated, "rms_norm": rms_norm, "rotary": rotary, "head_norms": head_norms}
    shape = Shape(
        layers=layers,
        vocabulary=vocabulary,
        context=context,
        norm_vectors=2 if biases and not rms_norm else 1,
        learned_positions=learned_positions,
        tied=tied_output,
        **sizes,
        **kinds,
    )
    return replace(shape, biases=_biased(shape, biases, qkv_biases))


def _biased(shape: Shape, all_of_them: bool, qkv: bool) -> tuple[str, ...]:
    """Return the names of matrices that have a bias: all, or query, key and value, or none."""
    if all_of_them:
        return tuple(accountant.matrices(shape))
    return ("query", "key", "value") if qkv else ()


def _layer_sizes(
    width: int, heads: int, kv_heads: int | None, head_width: int | None, feed_forward: int | None
) -> dict[str, int]:
    """Return the sizes of a layer, as fields of a `Model`. A size that is None is as in a GPT-2."""
    check_sizes(width=width, heads=heads)
    if feed_forward is not None:
        check_sizes(feed_forward=feed_forward)
    if not heads or (head_width is None and width % heads):
        raise ValueError(
            f"The width has to be a multiple of the heads; {width} is not one of {heads}."
        )
    return {
        "width": width,
        "heads": heads,
        "kv_heads": heads if kv_heads is None else kv_heads,
        "head_width": width // heads if head_width is None else head_width,
        "inner": 4 * width if feed_forward is None else feed_forward,
    }
