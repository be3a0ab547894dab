"""The models with which a reader's terms of the accountant are checked, and cases in words.

The three small ones differ in all that a term could overlook: biases, shared keys and values, a
gate, tied tables, and heads that together are not as wide as the model.
"""

from course_utils.core.accountant import Model
from course_utils.core.predict import known
from course_utils.core.say.language import translated

MATRICES_WITHOUT_GATE = ("query", "key", "value", "out", "up", "down")
GPT = Model(
    layers=2,
    width=256,
    heads=4,
    kv_heads=4,
    head_width=64,
    inner=1024,
    vocabulary=2100,
    context=96,
    gated=False,
    biases=MATRICES_WITHOUT_GATE,
    norm_vectors=2,  # LayerNorm's weight and bias; RMSNorm, in the other two, has only a weight
    learned_positions=True,
    tied=True,
)
LLAMA = Model(
    layers=3,
    width=96,
    heads=6,
    kv_heads=2,  # each is shared by three heads
    head_width=16,
    inner=256,
    vocabulary=900,
    context=96,
)
QWEN = Model(
    layers=2,
    width=96,
    heads=4,
    kv_heads=1,
    head_width=32,  # so that all heads together are wider than the model
    inner=200,
    vocabulary=800,
    context=96,
    biases=("query", "key", "value"),
    head_norms=True,
    tied=True,
)
# A published one, which notebook 4 counts, too.
QWEN_HALF_BILLION = known("qwen2.5-0.5b")
EACH = [(GPT,), (LLAMA,), (QWEN,)]  # an exercise's cases, with one argument each


def case_in_words(m: Model, batch: int = 0, sequence: int = 0, *options: str | int) -> str:
    """Return the beginning of a verdict's sentence on a case. The arguments are the case's.

    Without a batch, the case is a model alone. The options are the dtype and the number of layers
    that are recomputed; a case may have only one of them, or none.

    >>> case_in_words(LLAMA, 1, 96, "bf16", 2)
    'For a small Llama (3 layers, width 96) and 1 × 96 tokens in bf16, 2 of 3 layers recomputed'
    """
    model = model_in_words(m)
    if batch:
        words = translated(
            "For {model} and {batch} × {sequence} tokens",
            model=model,
            batch=batch,
            sequence=sequence,
        )
    else:
        words = translated("For {model}", model=model)
    for option in options:
        if isinstance(option, str):  # a dtype
            words = translated("{case} in {dtype}", case=words, dtype=option)
        else:
            words = translated(
                "{case}, {count} of {layers} layers recomputed",
                case=words,
                count=option,
                layers=m.layers,
            )
    return words


def model_in_words(m: Model) -> str:
    """Return the published model's name; of a small model, its kind and size.

    The kind is read from the fields, because cases also use small models with a changed field.
    """
    if m == QWEN_HALF_BILLION:
        return "Qwen2.5 0.5B"
    if m.learned_positions:
        kind = "GPT-2"
    elif m.biases or m.head_norms:
        kind = "Qwen"
    else:
        kind = "Llama"
    return translated(
        "a small {kind} ({layers} layers, width {width})",
        kind=kind,
        layers=m.layers,
        width=f"{m.width:,}",
    )
