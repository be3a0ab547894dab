"""Questions of notebook 5: what a step costs, and what it keeps."""

from course_utils.core import accountant
from course_utils.core.say import in_words
from course_utils.stage.recall.question import Asked, Mistake, Question


def _rule_of_six(layers: int) -> Asked:
    percent = 100 * (3 * layers - 1) / (3 * layers)
    return Asked(
        f"A network has {layers} equal layers of one matrix each, and its input is data, which "
        "needs no gradient. How many percent of 6BP FLOPs (B rows, P parameters) does a step "
        "take?",
        answer=percent,
        unit="percent",
        derivation=f"Of {3 * layers} products, one is not needed, the gradient of the input: "
        f"{3 * layers - 1} / {3 * layers} = {in_words(percent, 'percent')}.",
        mistakes=(
            Mistake(100, "The first layer need not pass a gradient on to the data."),
            Mistake(
                100 * (2 * layers) / (3 * layers),
                "Only the first layer is spared a product, the gradient of its input.",
            ),
        ),
    )


def _frozen(layers: int, trained: int) -> Asked | None:
    if trained > layers:
        return None
    passed_on = layers - trained
    products = layers + 1 + passed_on
    return Asked(
        f"A network has {layers} equal layers of one matrix each, and its input is data. Only "
        f"layer {trained} is trained, counted from 1 at the input. How many matrix products does "
        "a step take?",
        answer=products,
        unit="products",
        is_exact=True,
        derivation=f"{layers} forward, 1 for the trained layer's weights, and {passed_on} to bring "
        f"the gradient through the layers after it: {products}.",
        mistakes=(
            Mistake(layers + 1, "The gradient has to come through every layer after that one."),
            Mistake(products + 1, "Nobody needs the gradient of the trained layer's input."),
            Mistake(3 * layers - 1, "That is with all layers trained."),
        ),
    )


def _kept(width: int, heads: int, tokens: int, layers: int) -> Asked:
    model = accountant.Model(
        layers, width, heads, heads, width // heads, 4 * width, 50_257, tokens, gated=False
    )
    gigabytes = layers * accountant.layer_bytes(model, 1, tokens, "bf16") / 1e9
    return Asked(
        f"A GPT of {layers} layers is {width:,} wide, and its attention is fused. How many GB do "
        f"the layers keep for the backward pass, for {tokens:,} tokens in bf16?",
        answer=gigabytes,
        unit="GB",
        tolerance=0.1,
        derivation="A layer keeps 16 numbers for each token and unit of width: 4 around its norms, "
        f"4 in attention, 8 in the feed-forward. {layers} × 16 × {tokens:,} × {width:,} × 2 bytes, "
        f"and fused attention's 4 bytes for each token and head: {in_words(gigabytes, 'GB')}.",
        mistakes=(
            Mistake(
                gigabytes / 2,
                "The feed-forward alone keeps 8 numbers for each unit of width; norms and "
                "attention keep as many again.",
            ),
            Mistake(gigabytes / 16, "That is the input of each layer, and nothing inside it."),
        ),
    )


def _scores(batch: int, heads: int, tokens: int) -> Asked | None:
    gigabytes = accountant.tensor_bytes((batch, heads, tokens, tokens), "bf16") / 1e9
    if gigabytes > 80:
        return None  # no GPU would hold it
    return Asked(
        f"Attention without a fused kernel keeps its scores. How many GB is one tensor of them, in "
        f"bf16, for {batch} sequences of {tokens:,} tokens and {heads} heads?",
        answer=gigabytes,
        unit="GB",
        derivation=f"A score for each head and each pair of tokens: {batch} × {heads} × "
        f"{tokens:,}² × 2 bytes = {in_words(gigabytes, 'GB')}.",
        mistakes=(
            Mistake(gigabytes / heads, "Each head has scores of its own."),
            Mistake(gigabytes / 2, "A number in bf16 takes 2 bytes."),
            Mistake(gigabytes / tokens, "It is a score for each pair of tokens."),
        ),
    )


def _in_parts(activations: int, state: int, parts: int) -> Asked:
    peak = state + activations / parts
    return Asked(
        f"Weights, gradients and optimizer take {state} GB, and a batch's activations "
        f"{activations} GB besides. The batch now goes through the model in {parts} equal parts. "
        "How many GB is the peak?",
        answer=peak,
        unit="GB",
        derivation="Only one part's activations are there at a time, while all of the state stays: "
        f"{state} + {activations} / {parts} = {in_words(peak, 'GB')}.",
        mistakes=(
            Mistake(
                (state + activations) / parts,
                "The state does not depend on the batch, so it stays whole.",
            ),
            Mistake(
                state + activations,
                "A part's activations are freed by its backward pass, before the next part.",
            ),
        ),
    )


def _low_rank(width: int, rank: int) -> Asked | None:
    percent = 100 * (2 / 3 + 2 * rank / width)
    if not 69 <= percent <= 97:
        return None
    return Asked(
        f"A matrix of {width:,} × {width:,} inside a network is frozen, and a low-rank pair of "
        f"rank {rank} is trained beside it. How many percent of the FLOPs does a step take that "
        "training the matrix would take?",
        answer=percent,
        unit="percent",
        derivation=f"The frozen matrix keeps two of its three products, and the pair has "
        f"2 × {rank} / {width:,} of its weights: 2/3 + {2 * rank}/{width:,} = "
        f"{in_words(percent, 'percent')}.",
        mistakes=(
            Mistake(
                200 * rank / width,
                "The frozen matrix is still multiplied forward, and passes the gradient on.",
            ),
            Mistake(200 / 3, "That is the frozen matrix alone. The pair comes on top of it."),
            Mistake(
                100 * (1 / 3 + 2 * rank / width),
                "The frozen matrix has to pass the gradient on to the layers before it.",
            ),
        ),
    )


def _half_scores(width: int, heads: int) -> Asked | None:
    if width % heads:
        return None
    length = 16 * width // heads
    return Asked(
        f"A layer like GPT-2's is {width:,} wide and has {heads} heads. Its attention is explicit, "
        "and keeps the scores after the softmax. At which sequence length are they half of what "
        "the layer keeps?",
        answer=length,
        unit="tokens",
        derivation=f"All else is 16H numbers for each token, and the scores are A · S. So S is "
        f"16H / A = 16 × {width:,} / {heads} = {length:,}.",
        mistakes=(
            Mistake(16 * width, "Each head has S scores for each token."),
            Mistake(
                8 * width // heads,
                "The feed-forward keeps 8H, and norms and attention keep 8H as well.",
            ),
        ),
    )


QUESTIONS = (
    Question("gradients.rule_of_six", "7146e6fe", _rule_of_six, {"layers": range(2, 9)}),
    Question(
        "gradients.frozen",
        "c2cd3ccbe",
        _frozen,
        {"layers": range(4, 13), "trained": range(1, 10)},
    ),
    Question(
        "gradients.kept",
        "c5a49449f4",
        _kept,
        {
            "width": (768, 1024, 2048, 4096),
            "heads": (8, 16, 32),
            "tokens": (2048, 4096, 8192, 16_384),
            "layers": (12, 24, 32),
        },
    ),
    Question(
        "gradients.scores",
        "16de91ee",
        _scores,
        {
            "batch": (2, 4, 8, 16),
            "heads": (12, 16, 32),
            "tokens": (2048, 4096, 8192, 16_384),
        },
    ),
    Question(
        "gradients.in_parts",
        "cbcf807de",
        _in_parts,
        {
            "activations": (24, 36, 48, 60, 96),
            "state": (10, 16, 20, 32, 50),
            "parts": (3, 4, 6, 8, 12),
        },
    ),
    Question(
        "gradients.low_rank",
        "c6e1b20a1",
        _low_rank,
        {"width": (1024, 2048, 4096, 8192), "rank": (64, 128, 256, 384, 512, 768)},
    ),
    Question(
        "gradients.half_scores",
        "a50eca",
        _half_scores,
        {"width": (768, 1024, 2048, 4096, 5120), "heads": (8, 12, 16, 32, 40)},
    ),
)
