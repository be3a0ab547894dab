"""What is trained and served, on which GPUs and how, and the number that is explained."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from course_utils.chapters.checkpointing.run import Run
from course_utils.core import accountant
from course_utils.core.datasheets import MACHINES
from course_utils.core.say.language import translated
from course_utils.engine.labs.fields import among, choice, said_is, size, tick, typed, whole

CONFIGS = Path(accountant.__file__).with_name("configs")
NAMES = {
    "Llama 3 8B": "llama-3-8b",
    "Llama 3 70B": "llama-3-70b",
    "Llama 2 13B": "llama-2-13b",
    "Qwen2.5 0.5B": "qwen2.5-0.5b",
    "Qwen3 4B": "qwen3-4b",
    "Gemma 7B": "gemma-7b",
    "Gemma 2 9B": "gemma-2-9b",
    "Gemma 3 1B": "gemma-3-1b",
    "Mistral 7B": "mistral-7b",
    "Mixtral 8x7B": "mixtral-8x7b",
    "Qwen3 30B-A3B": "qwen3-30b-a3b",
    "gpt-oss 20B": "gpt-oss-20b",
    "gpt-oss 120B": "gpt-oss-120b",
    "DeepSeek-V2": "deepseek-v2",
    "DeepSeek-V3": "deepseek-v3",
    "Kimi K2": "kimi-k2",
    "SmolLM2 135M": "smollm2-135m",
    "GPT-2 small": "gpt2",
    "GPT-2 XL": "gpt2-xl",
}
PASTED = "a config.json"
A_SMALL_ONE = (
    '{"model_type": "llama", "num_hidden_layers": 16, "hidden_size": 2048, '
    '"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192, '
    '"vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": true}'
)
TOKENS = {
    "1 billion": 1e9,
    "10 billion": 1e10,
    "100 billion": 1e11,
    "300 billion": 3e11,
    "1 trillion": 1e12,
    "2 trillion": 2e12,
    "5 trillion": 5e12,
    "15 trillion": 15e12,
    "36 trillion": 36e12,
}
STAGES = {"0": 0, "1": 1, "2": 2, "3": 3}
RECIPES = ("bf16+master adamw", "bf16+master adamw, fp32 gradients", "bf16 adamw", "fp32 adamw")
NUMBERS = (
    *("parameters", "used", "state", "step", "gathered", "together"),
    *("flops", "days", "lost", "cache", "decoding", "hours", "energy", "money"),
)
SERVING_GPUS = 8  # for each copy of the model that is served, unless the reader says otherwise

_USUAL = {"sequence": 8192, "batch": 1, "recomputed": False, "opened": "days"}
PRESETS: Mapping[str, Mapping[str, object]] = {
    "8B on 1,024 GPUs?": {
        **_USUAL,
        "model": "Llama 3 8B",
        "gpus": 1024,
        "tokens": 15e12,
        "stage": 3,
    },
    "70B on 8 GPUs?": {
        **_USUAL,
        "model": "Llama 3 70B",
        "gpus": 8,
        "tokens": 1e9,
        "stage": 3,
        "opened": "together",
    },
    "how many of DeepSeek-V3's work on a token?": {
        **_USUAL,
        "model": "DeepSeek-V3",
        "gpus": 2048,
        "tokens": 15e12,
        "stage": 3,
        "opened": "used",
    },
    "64 users of Mixtral?": {
        **_USUAL,
        "model": "Mixtral 8x7B",
        "gpus": 1024,
        "tokens": 1e12,
        "stage": 3,
        "users": 64,
        "opened": "decoding",
    },
}


@dataclass(frozen=True)
class Asked(Run):
    """A model, the GPUs and the recipe that train it, and the users whom it serves."""

    # Of each `whole`: its label, its default, the least and the most.
    model: str = choice("model", (*NAMES, PASTED), "Llama 3 8B", menu=True)
    config: str = typed(
        "its text",
        A_SMALL_ONE,
        examples=[A_SMALL_ONE],
        placeholder='{"model_type": "llama", …}',
        width_px=420,
        when=said_is("model", PASTED),
    )
    machine: str = choice("GPU", tuple(MACHINES), "H100 SXM", menu=True)
    gpus: int = size("GPUs", 1024, slider_px=80)
    tokens: float = choice("tokens", TOKENS, 15e12, menu=True)
    recipe: str = choice("recipe", RECIPES, RECIPES[0], menu=True)
    stage: int = choice("sharding", STAGES, 3)
    batch: int = size("batch on each", 1, slider_px=70)
    sequence: int = size("sequence", 8192, slider_px=80)
    recomputed: bool = tick("recompute layers", False)
    percent: int = whole("MFU, %", 40, 1, 100, width_px=230)
    users: int = size("users", 1, slider_px=96)
    cached: int = size("tokens of each", 8192, slider_px=96)
    serving: int = size("served by", SERVING_GPUS, slider=False)
    watts: int = among("W", (300, 400, 700, 1000, 1200), 700, width_px=150)
    price: float = among("$ an hour", (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0), 2.0, width_px=170)
    opened: str = choice("explain", NUMBERS, "days", menu=True)

    @cached_property
    def m(self) -> accountant.Model:
        """The model that is chosen, or that the text describes. ValueError if there is none."""
        return accountant.model_from(self._config)

    @property
    def _config(self) -> dict[str, object]:
        if self.model != PASTED:
            path = CONFIGS / f"{NAMES[self.model]}.json"
            return json.loads(path.read_text(encoding="utf-8"))
        try:
            config = json.loads(self.config)
        except (ValueError, RecursionError):
            config = None
        if not isinstance(config, dict):
            raise ValueError(
                translated(
                    "Paste the whole text of a model's config.json, from its { to its last }. "
                    "On the model's page at Hugging Face, it is among the files."
                )
            )
        return config
