"""Three small models on which the accountant's terms are tried: a GPT-2, a Llama and a Qwen."""

from course_utils.core.accountant import Model

ALL = ("query", "key", "value", "out", "up", "down")  # matrices of a layer without a gate
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
    biases=ALL,
    norm_vectors=2,
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
EACH = [(GPT,), (LLAMA,), (QWEN,)]  # an exercise's cases, with one argument each
