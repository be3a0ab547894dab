"""The labs: a folder for each, which holds its class; `session` moves them, `panel` is their host in Jupyter.

To read one from slider to picture: `lab`, then `matmul/__init__`, `matmul/asked`, `matmul/picture`.
"""

from collections.abc import Callable
from importlib import import_module


def lab_named(name: str) -> object:
    """A new lab, which needs no Jupyter: in the folder of that name, the class of that name."""
    return getattr(import_module(f"course_utils.labs.{name}"), f"{name.capitalize()}Lab")()


def _factory(name: str) -> Callable[[], object]:
    def panel() -> object:
        from course_utils.labs.panel import Panel  # torch and Jupyter, which a lab alone does not need

        return Panel(lab_named(name))

    panel.__name__ = panel.__qualname__ = f"{name}_lab"
    panel.__doc__ = f"The {name} lab, live."
    return panel


float_lab = _factory("float")
stride_lab = _factory("stride")
einsum_lab = _factory("einsum")
matmul_lab = _factory("matmul")
gradient_lab = _factory("gradient")
optimizer_lab = _factory("optimizer")
memory_lab = _factory("memory")
precision_lab = _factory("precision")
plan_lab = _factory("plan")

__all__ = sorted(name for name in globals() if name.endswith("_lab"))
