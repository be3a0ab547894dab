"""The figures of all chapters by name: each takes data and returns a closed matplotlib Figure.

One, `forward_boxes`, returns boxes in HTML, which take less space in a notebook.

No function here computes the data that it draws. matplotlib is imported with the first figure.
"""

import importlib
from collections.abc import Callable

# By a figure's name, which is also that of the function that draws it, the chapter's folder.
_CHAPTER_OF = {
    "bit_fields": "floats",
    "range_and_gap": "floats",
    "losses_by_mix": "floats",
    "shapes_to_scale": "einsum",
    "layer_matrices": "einsum",
    "product_boxes": "flops",
    "waterfall": "flops",
    "layer_boxes": "flops",
    "tensor_boxes": "gradients",
    "forward_boxes": "flops",
    "scales_by_step": "mixed_precision",
    "singular_values": "optimizers",
    "state_by_stage": "optimizers",
    "weights_by_step": "mixed_precision",
    "wasted_shares": "checkpointing",
    "steps_on_a_gpu": "checkpointing",
    "step_parts": "checkpointing",
}

__all__ = list(_CHAPTER_OF)


def __getattr__(name: str) -> Callable[..., object]:
    """Import the function that draws the figure `name` from its chapter.

    Python calls this for a name that the module lacks, so `figures.waterfall` finds its function.
    """
    if name not in _CHAPTER_OF:
        raise AttributeError(f"There is no figure {name!r}. There are: {', '.join(__all__)}.")
    module = importlib.import_module(f"course_utils.chapters.{_CHAPTER_OF[name]}.figures")
    return getattr(module, name)


def __dir__() -> list[str]:
    """Return the names of all figures, which a notebook offers as completions."""
    return __all__
