"""The exercises of notebook 05 on windows and on latent attention; `check` imports them by name.

For one case, an exercise yields the right answer first, and then what tempting mistakes lead to.
Each has a sentence: why it is right, or the advice on the mistake.
"""

from course_utils.core.accountant import Latent, Model
from course_utils.core.predict import dtype_bytes, known
from course_utils.core.say.language import translated
from course_utils.engine.judging import Answers, function

# Tokens of a sequence, and a window; in the third case the window is longer than the sequence.
WINDOWS = [(11, 4), (6, 6), (5, 9), (300, 64)]


def _window_in_words(sequence: int, window: int) -> str:
    return translated(
        "For {tokens} tokens and a window of {window}", tokens=sequence, window=window
    )


@function(
    WINDOWS,
    case_words=_window_in_words,
    hints=(
        "Write down how many keys each query meets, from the first query on: 1, 2, 3, and so on. "
        "Find the query from which on this number stays the same.",
        "The first `window` queries meet 1 + 2 + ... + window keys, which is "
        "window * (window + 1) // 2. Each later query meets `window` of them.",
        "If the window is longer than the sequence, it leaves out nothing: take the smaller of "
        "the two.",
    ),
)
def window_pairs(sequence: int, window: int) -> Answers:
    """The check of a reader's window_pairs(sequence, window): pairs of a query and a key."""
    right = _pairs(sequence, window)
    yield right, "Four sequences, against a loop over the queries."
    yield (
        sequence * window,
        "The first queries have fewer keys before them than the window is long.",
    )
    yield (
        _pairs(sequence, sequence),
        "Those are the pairs without a window. It leaves out the keys far back.",
    )
    yield (
        sequence**2,
        "Those are all pairs. No query meets a later key, nor one outside its window.",
    )
    yield from _of_the_own_key(sequence, window, right)
    yield (
        2 * right - sequence,
        "That counts later keys, too. A query meets only its own and those before it.",
    )
    yield (
        sequence * window // 2,
        "Half of the keys is the mean if the window is as long as the sequence. In a shorter one, "
        "most queries meet all `window` keys.",
    )
    yield (
        window * (window + 1) // 2 + (sequence - window) * window,
        "A window that is longer than the sequence leaves out nothing: take the smaller of the two "
        "first.",
    )


def _pairs(sequence: int, met: int) -> int:
    """Return the pairs if each query meets `met` keys, or all there are if these are fewer."""
    return sum(min(query, met) for query in range(1, sequence + 1))


def _of_the_own_key(sequence: int, window: int, right: int) -> Answers:
    """Yield what comes of counting a query's own key otherwise: once more, or not at all."""
    one_more = _pairs(sequence, window + 1)
    yield one_more, "The query's own key is one of the `window` keys, and not one more."
    yield (
        right - sequence,
        "A query meets its own key, too: on the diagonal is one more pair for each token.",
    )
    yield one_more - sequence, "The query's own key is one of the `window` keys that it meets."


# In this one, no two of the listed mistakes give the same number of bytes.
SMALL_LATENT = Model(
    layers=5,
    width=96,
    heads=7,
    kv_heads=7,
    head_width=24,
    inner=200,
    vocabulary=900,
    context=96,
    latent=Latent(query_rank=36, rank=20, content_width=16, position_width=8, value_width=12),
)


def _cache_in_words(m: Model, tokens: int, dtype: str) -> str:
    return translated(
        "For {layers} layers, a latent of {rank} and {tokens} tokens in {dtype}",
        layers=m.layers,
        rank=m.latent.rank,
        tokens=tokens,
        dtype=dtype,
    )


@function(
    [
        (SMALL_LATENT, 10, "fp32"),
        (known("deepseek-v2-lite"), 3, "bf16"),
        (known("deepseek-v3"), 1, "fp8"),
    ],
    case_words=_cache_in_words,
    hints=(
        "Keep just so much of a token that every head's keys and values can be made again.",
        "In each layer it is one latent, m.latent.rank numbers, and one position part of a key, "
        "m.latent.position_width numbers.",
    ),
)
def latent_cache_bytes(m: Model, tokens: int, dtype: str) -> Answers:
    """The check of a reader's latent_cache_bytes(…): what the cache of one user takes."""
    nbytes = dtype_bytes(dtype)
    right = 0
    for _ in range(m.layers):
        for part in (m.latent.rank, m.latent.position_width):
            right += tokens * part * nbytes
    yield right, "Three models, against a loop over layers and over the two parts."
    of_a_number = m.layers * tokens * nbytes  # the bytes of one number for each token and layer
    for numbers, advice in _other_numbers(m):
        yield numbers * of_a_number, advice
    yield right // m.layers, "That is one layer's. Each layer keeps its own latents."
    yield right // tokens, "That is the cache of one token. The user has `tokens` of them."
    yield right // nbytes, "Those are numbers. Each takes BYTES[dtype] bytes."
    yield 8 * right, "Those are bits. Return bytes."


def _other_numbers(m: Model) -> Answers:
    """Yield numbers that might be cached of a token in a layer, but are too few or too many."""
    latent = m.latent
    right = latent.rank + latent.position_width
    yield (
        latent.rank,
        "The part of the key that carries the position is not made from the latent: keep it, too.",
    )
    yield (
        latent.rank + m.heads * latent.position_width,
        "All heads share one position part of the key, so it is kept once.",
    )
    yield m.heads * right, "All heads read the same latent, so it is kept once."
    yield (
        2 * right,
        "Keys and values are made from one and the same latent: there is no second one.",
    )
    yield (
        m.heads * (latent.content_width + latent.position_width + latent.value_width),
        "Those are the keys and values of all heads. Keep only what they are made from.",
    )
    yield (
        latent.query_rank + right,
        "No later token needs this token's query, so the queries' latent is not kept.",
    )
