"""The shapes of models that were published."""

from collections.abc import Mapping

from course_utils.core.predict.transformer import Transformer


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
