"""Three small models on which the accountant's terms are tried: a GPT-2, a Llama and a Qwen."""

from course_utils.core.accountant import Model

# A GPT-2, a Llama with shared heads, and a Qwen whose heads are wider than its width over their number.
ALL = ("query", "key", "value", "out", "up", "down")
GPT = Model(
    2, 256, 4, 4, 64, 1024, 2100, 96, False, ALL, norm_vectors=2, learned_positions=True, tied=True
)
LLAMA = Model(
    layers=3, width=96, heads=6, kv_heads=2, head_width=16, inner=256, vocabulary=900, context=96
)
QWEN = Model(2, 96, 4, 1, 32, 200, 800, 96, biases=ALL[:3], head_norms=True, tied=True)
EACH = [(m,) for m in (GPT, LLAMA, QWEN)]
