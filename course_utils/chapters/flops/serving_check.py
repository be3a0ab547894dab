"""The exercise of notebook 04's *Beyond* on serving a model; `check` imports it by name.

For one case, an exercise yields the right answer first, and then what tempting mistakes lead to.
Each has a sentence: why it is right, or the advice on the mistake.
"""

from dataclasses import replace

from course_utils.chapters.small_models import GPT, LLAMA, QWEN, model_in_words
from course_utils.core.accountant import Model
from course_utils.core.predict import dtype_bytes
from course_utils.core.say.language import translated
from course_utils.engine.judging import Answers, function


def _case_in_words(m: Model, tokens: int, dtype: str) -> str:
    return translated(
        "For {model} and {tokens} tokens in {dtype}",
        model=model_in_words(m),
        tokens=tokens,
        dtype=dtype,
    )


@function(
    # In the first, no two of the listed mistakes give the same number of bytes.
    [
        (replace(LLAMA, layers=5, heads=9, kv_heads=3), 10, "fp32"),
        (GPT, 7, "bf16"),
        (QWEN, 3, "fp8"),
    ],
    case_words=_case_in_words,
    hints=(
        "Of each token, kv_heads heads have a key and a value each: 2 · head_width numbers.",
        "Each layer has its own keys and values.",
    ),
)
def cache_bytes(m: Model, tokens: int, dtype: str) -> Answers:
    """The check of a reader's cache_bytes(…): what the keys and values of one user take."""
    numbers = 0
    for _ in range(m.layers):
        for _ in ("key", "value"):
            numbers += tokens * m.kv_heads * m.head_width
    nbytes = dtype_bytes(dtype)
    right = numbers * nbytes
    yield right, "Three models, against a loop over layers, keys and values."
    yield numbers, "Those are numbers. Each takes BYTES[dtype] bytes."
    yield right // 2, "A key and a value are kept of each token: twice as much."
    yield right // m.layers, "That is one layer's. Each layer keeps its own keys and values."
    yield right // tokens, "That is the cache of one token. The user has `tokens` of them."
    all_heads = right * m.heads // m.kv_heads
    yield all_heads, "Keys and values have kv_heads heads, not heads: several queries share a key."
    yield 8 * right, "Those are bits. Return bytes."
    whole_width = 2 * m.layers * tokens * m.width * nbytes
    yield whole_width, "A key is kv_heads · head_width numbers wide, and not as wide as the model."
    one_head = right // m.kv_heads
    yield one_head, "That is a single head's. There are kv_heads of them."
