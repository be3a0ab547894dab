"""Published models: the shapes that the accountant reads in their config.json."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from course_utils.core.accountant import Model, model_from
from course_utils.core.predict.transformer import Shape, shape_of

# Each file has what a config.json says of the shape, and where it was published.
CONFIGS = Path(__file__).parents[1] / "configs"


def known(name: str) -> Model:
    """Return a published model, by its file's name. ValueError, with all names, if there is none.

    >>> known("llama-3-8b").layers
    32
    """
    names = sorted(path.stem for path in CONFIGS.glob("*.json"))
    if name not in names:
        raise ValueError(f"There is no {name!r} here. There are: {', '.join(names)}.")
    return model_from(json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8")))


# GPT-3's config.json was not published; its sizes are in arXiv 2005.14165, table 2.1. The
# config.json of Llama 3.1 405B says 131,072 positions, but most of the training took sequences of
# 8,192: arXiv 2407.21783, tables 3 and 4. So the context below is that of Llama 3 70B.
GPT_3 = {
    "layers": 96,
    "width": 12_288,
    "heads": 96,
    "kv_heads": 96,
    "inner": 49_152,
    "context": 2048,
}
LLAMA_405B = {"layers": 126, "width": 16_384, "heads": 128, "inner": 53_248}
_MODELS = {
    "GPT-2 small": known("gpt2"),
    "GPT-2 medium": known("gpt2-medium"),
    "GPT-2 large": known("gpt2-large"),
    "GPT-2 XL": known("gpt2-xl"),
    "GPT-3": replace(known("gpt2"), **GPT_3, head_width=128),
    "Llama 3 8B": known("llama-3-8b"),
    "Llama 3 70B": known("llama-3-70b"),
    "Llama 3.1 405B": replace(known("llama-3-70b"), **LLAMA_405B),
}
MODELS: Mapping[str, Shape] = {name: shape_of(m) for name, m in _MODELS.items()}
