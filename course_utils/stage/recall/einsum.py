"""Questions of notebook 3: what a product of named dimensions costs."""

from course_utils.core import accountant, predict
from course_utils.core.say import in_words
from course_utils.stage.recall.question import WITHIN, Asked, Mistake, Question

SCORES = "b h i d, b h j d -> b h i j"


def _scores(batch: int, heads: int, tokens: int, head_width: int) -> Asked:
    flops = predict.einsum_flops(SCORES, b=batch, h=heads, i=tokens, j=tokens, d=head_width)
    return Asked(
        f"How many FLOPs is the einsum {SCORES}, with b = {batch}, h = {heads}, "
        f"i = j = {tokens:,} and d = {head_width}?",
        answer=flops,
        unit="FLOPs",
        derivation=f"A loop for each name, and 2 FLOPs inside: 2 × {batch} × {heads} × {tokens:,} "
        f"× {tokens:,} × {head_width} = {in_words(flops, 'FLOPs')}.",
        mistakes=(
            Mistake(flops / 2, "A multiply-add is 2 FLOPs."),
            Mistake(flops / head_width, "d is a loop, too: the one that is summed."),
            Mistake(flops / tokens, "i and j are two loops, although they are equally long."),
        ),
    )


def _growth(tokens: int, times: int) -> Asked:
    longer = tokens * times
    ratio = times**2
    return Asked(
        f"Texts grow from {tokens:,} to {longer:,} tokens. How many times as many FLOPs do "
        "attention's scores take?",
        answer=ratio,
        unit="times",
        derivation=f"There is a score for each pair of tokens, and a text of {times} times the "
        f"tokens has {times}² = {ratio} times the pairs.",
        mistakes=(
            Mistake(times, "Both the queries and the keys become more, so it is the square."),
            Mistake(times**3, "The width of a head stays as it is, so it is only the square."),
        ),
    )


def _order(tokens: int, width: int) -> Asked | None:
    if tokens % width or tokens == width:
        return None
    ratio = tokens // width
    return Asked(
        f"Q, K and V have {tokens:,} × {width} numbers each, and no softmax stands between. How "
        "many times as many FLOPs does (Q Kᵀ) V take as Q (Kᵀ V)?",
        answer=ratio,
        unit="times",
        derivation=f"(Q Kᵀ) V takes 4·S²·d FLOPs, and Q (Kᵀ V) takes 4·S·d². The ratio is S / d = "
        f"{tokens:,} / {width} = {ratio}.",
        mistakes=(
            Mistake(ratio**2, "Each order has two products, and in each the ratio is S / d once."),
            Mistake(1, "The result is the same. The FLOPs are not."),
        ),
    )


def _narrow(tokens: int, width: int, rank: int) -> Asked:
    flops = 2 * predict.matmul_flops(tokens, width, rank)
    wide_first = predict.matmul_flops(width, rank, width)
    wide_first += predict.matmul_flops(tokens, width, width)
    return Asked(
        f"x, {tokens:,} tokens of width {width:,}, is multiplied by A ({width:,} × {rank}) and "
        f"then by B ({rank} × {width:,}). In the cheaper order, how many FLOPs is that?",
        answer=flops,
        unit="FLOPs",
        derivation=f"(x A) B is two products of 2 × {tokens:,} × {width:,} × {rank} FLOPs each: "
        f"{in_words(flops, 'FLOPs')}.",
        mistakes=(
            Mistake(wide_first, "That is x (A B), which makes a wide matrix first."),
            Mistake(flops / 2, "There are two products, and a multiply-add is 2 FLOPs."),
        ),
    )


def _keys(tokens: int, heads: int, share: int, head_width: int) -> Asked:
    kv_heads = heads // share
    nbytes = accountant.tensor_bytes((tokens, kv_heads, head_width), "bf16")
    return Asked(
        f"A layer has {heads} heads of queries, each {head_width} wide, and every {share} of them "
        f"share one head of keys. How many bytes are the keys of {tokens:,} tokens in bf16?",
        answer=nbytes,
        unit="bytes",
        derivation=f"There are {heads} / {share} = {kv_heads} heads of keys. {tokens:,} × "
        f"{kv_heads} × {head_width} × 2 bytes = {in_words(nbytes, 'bytes')}.",
        mistakes=(
            Mistake(share * nbytes, "That is a head of keys for each head of queries."),
            Mistake(2 * nbytes, "The values would be as much again. Only the keys are asked for."),
            Mistake(nbytes / 2, "A number in bf16 takes 2 bytes."),
        ),
    )


def _patches(height: int, width: int, patch: int) -> Asked | None:
    if height % patch or width % patch:
        return None
    down = height // patch
    across = width // patch
    return Asked(
        f"An image of {height} × {width} pixels with 3 colours is cut into square patches of "
        f"{patch} × {patch} pixels, each of which is a token. How many tokens are there?",
        answer=down * across,
        unit="tokens",
        is_exact=True,
        derivation=f"{height} / {patch} = {down} patches down, {width} / {patch} = {across} "
        f"across: {down} × {across} = {down * across:,}. The colours are inside a token.",
        mistakes=(
            Mistake(3 * down * across, "The three colours of a patch are in the same token."),
            Mistake(patch * patch * 3, "That is how many numbers a token has."),
        ),
    )


def _weights(width: int, share: int, inner: int) -> Asked | None:
    heads = width // 128
    model = accountant.Model(1, width, heads, heads // share, 128, inner, 1, 1)
    shapes = accountant.matrices(model).values()
    weights = sum(inputs * outputs for inputs, outputs in shapes)
    keys = 2 * width * width // share
    feed_forward = 3 * width * inner
    if 2 * width**2 - keys <= WITHIN * weights:
        return None  # keys and values of full width would count as right
    return Asked(
        f"A layer like Llama's is {width:,} wide. Its keys and values are each {width // share:,} "
        f"wide, and its gated feed-forward is {inner:,} wide. How many weights do its matrices "
        "have?",
        answer=weights,
        unit="weights",
        derivation=f"Queries and output 2 × {width:,}², keys and values 2 × {width:,} × "
        f"{width // share:,}, and the feed-forward's three matrices 3 × {width:,} × {inner:,}: "
        f"{in_words(weights, 'weights')}.",
        mistakes=(
            Mistake(
                weights - feed_forward / 3,
                "A gated feed-forward has three matrices: gate, up and down.",
            ),
            Mistake(
                weights - keys + 2 * width**2,
                "Keys and values are narrower than the queries here.",
            ),
        ),
    )


QUESTIONS = (
    Question(
        "einsum.scores",
        "3b1a2ae5",
        _scores,
        {
            "batch": (2, 4, 8),
            "heads": (12, 16, 32),
            "tokens": (512, 1000, 2048),
            "head_width": (64, 128),
        },
    ),
    Question(
        "einsum.growth",
        "3b1a2ae5",
        _growth,
        {"tokens": (512, 1024, 2048, 4096, 8192), "times": (3, 4, 5, 6, 8, 16)},
    ),
    Question(
        "einsum.order",
        "893657e0",
        _order,
        {"tokens": (1024, 2048, 4096, 7680, 16_384, 32_768), "width": (64, 80, 96, 128, 256)},
    ),
    Question(
        "einsum.narrow",
        "c846b81b6",
        _narrow,
        {
            "tokens": (1000, 2048, 4096, 8192),
            "width": (1024, 2000, 4096, 8192),
            "rank": (4, 8, 16, 64),
        },
    ),
    Question(
        "einsum.keys",
        "c3b0e91c0",
        _keys,
        {
            "tokens": (1000, 2048, 8192, 32_768),
            "heads": (16, 32, 64),
            "share": (4, 8),
            "head_width": (64, 128),
        },
    ),
    Question(
        "einsum.patches",
        "c3b0e91e0",
        _patches,
        {"height": (224, 336, 384, 448), "width": (224, 256, 336, 512), "patch": (8, 14, 16, 32)},
    ),
    Question(
        "einsum.weights",
        "c92af20561",
        _weights,
        {
            "width": (2048, 4096, 5120, 8192),
            "share": (4, 8),
            "inner": (8192, 14_336, 17_920, 28_672),
        },
    ),
)
