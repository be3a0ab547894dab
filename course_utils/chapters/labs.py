"""The labs of all chapters by name. Each is a class in a folder of its chapter."""

from collections.abc import Callable
from functools import partial
from importlib import import_module

CHAPTER_OF = {
    "float": "floats",
    "sum": "floats",
    "walk": "tensors",
    "einsum": "einsum",
    "heads": "einsum",
    "matmul": "flops",
    "roof": "flops",
    "timeline": "gradients",
    "optimizer": "optimizers",
    "precision": "mixed_precision",
    "updates": "mixed_precision",
    "plan": "checkpointing",
}
NAMES = tuple(sorted(CHAPTER_OF))
__all__ = [f"{name}_lab" for name in NAMES]


def lab_named(name: str) -> object:
    """A new lab, which needs no Jupyter: in the folder of that name, the class of that name."""
    if name not in NAMES:
        raise ValueError(f"There is no lab {name!s:.40}. There are: {', '.join(NAMES)}.")
    folder = f"course_utils.chapters.{CHAPTER_OF[name]}.{name}_lab"
    return getattr(import_module(folder), f"{name.capitalize()}Lab")()


def figure(name: str, *controls: str, **answers: object) -> object:
    """The lab of that name with those controls alone, at the place of a figure; it begins with these answers.

    Controls are named as in the lab's class: its fields, presets, jobs and actions.
    """
    from course_utils.engine.labs.panel import Panel

    return Panel(lab_named(name), *controls, **answers)


def __getattr__(name: str) -> Callable[[], object]:
    """`float_lab` and its like: makes the whole lab, live."""
    if name not in __all__:
        raise AttributeError(f"There is no {name!r} here. There are: {', '.join(__all__)}.")
    return partial(figure, name.removesuffix("_lab"))
