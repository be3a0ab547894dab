"""The labs of all chapters by name. Each lab is a class in a folder of its chapter."""

from collections.abc import Callable
from functools import partial
from importlib import import_module

# By a lab's name, the chapter's folder, in which the lab has a folder such as `float_lab`.
CHAPTER_OF = {
    "account": "checkpointing",
    "float": "floats",
    "sum": "floats",
    "walk": "tensors",
    "einsum": "einsum",
    "heads": "einsum",
    "box": "flops",
    "matmul": "flops",
    "roof": "flops",
    "chain": "gradients",
    "timeline": "gradients",
    "optimizer": "optimizers",
    "precision": "mixed_precision",
    "updates": "mixed_precision",
    "plan": "checkpointing",
}
NAMES = tuple(sorted(CHAPTER_OF))
__all__ = [f"{name}_lab" for name in NAMES]


def lab_named(name: str) -> object:
    """Make a lab, which needs no Jupyter: for "roof" a RoofLab from the folder `roof_lab`.

    If no lab has that name, raise a ValueError that lists the names of all labs.
    """
    if name not in NAMES:
        # A reader can pass anything as the name, so its text is cut after 40 characters.
        raise ValueError(f"There is no lab {name!s:.40}. There are: {', '.join(NAMES)}.")
    folder = import_module(f"course_utils.chapters.{CHAPTER_OF[name]}.{name}_lab")
    lab_class = getattr(folder, f"{name.capitalize()}Lab")
    return lab_class()


def figure(name: str, *controls: str, **answers: object) -> object:
    """Return a lab as a figure. If `controls` are named, it shows no others.

    Controls are named as in the lab's class: its fields, presets, jobs and actions. `answers` are
    the values with which the fields begin. For example, figure("float", "number", number="0.1")
    shows one control, in which 0.1 stands.
    """
    # Imported late, because a panel needs Jupyter's widgets, and a lab by itself does not.
    from course_utils.engine.labs.panel import Panel

    return Panel(lab_named(name), *controls, **answers)


def __getattr__(name: str) -> Callable[[], object]:
    """Return the function `name`, such as `float_lab`, which shows a lab with all its controls.

    Python calls this for a name that the module lacks. `float_lab(*controls, **answers)` takes what
    `figure` takes after the lab's name.
    """
    if name not in __all__:
        raise AttributeError(f"There is no {name!r} here. There are: {', '.join(__all__)}.")
    return partial(figure, name.removesuffix("_lab"))
