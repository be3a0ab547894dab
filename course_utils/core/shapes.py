"""The accountant's model in the course's own words, so that torch can build what the reader's file describes."""

import json
from pathlib import Path

from course_utils.core.accountant import Model, model_from
from course_utils.core.predict import Transformer

CONFIGS = Path(__file__).parent / "configs"  # what a config.json says of the shape, and where it is published
BIASES = {0: {}, 3: {"qkv_biases": True}, 6: {"biases": True}}  # by how many matrices have one


def known(name: str) -> Model:
    """A published model, by the name of its file.

    >>> known("llama-3-8b").layers
    32
    """
    names = sorted(path.stem for path in CONFIGS.glob("*.json"))
    if name not in names:
        raise ValueError(f"There is no {name!r} here. There are: {', '.join(names)}.")
    return model_from(json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8")))


def transformer(m: Model) -> Transformer:
    """The shape that `models.Transformer(**vars(shape))` builds.

    >>> from course_utils.core.accountant import model_from
    >>> gpt2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}
    >>> transformer(model_from(gpt2)).parameters
    124439808
    """
    if len(m.biases) not in BIASES:
        raise ValueError(
            f"The course builds models with biases in no matrix, in queries, keys and values, or in all; "
            f"here {', '.join(m.biases)} have one."
        )
    return Transformer(
        *(m.layers, m.width, m.heads, m.vocabulary, m.context, m.inner),
        **{"biases": False} | BIASES[len(m.biases)],
        learned_positions=m.learned_positions,
        tied_output=m.tied,
        kv_heads=m.kv_heads,
        gated=m.gated,
        rms_norm=m.norm_vectors == 1,
        rotary=not m.learned_positions,
        head_width=m.head_width,
        head_norms=m.head_norms,
    )
