"""Data in, a closed matplotlib Figure out. Nothing here computes what it draws.

The labs and the checks take only colours from here, so matplotlib waits for the first figure.
"""

import importlib

from course_utils.figures.colours import COLOURS

_DRAWN_BY = {
    "cost": "gradient_chain product_boxes waterfall",
    "learning": "losses_by_mix scales_by_step wasted_shares weights_by_step",
    "numbers": "reach_and_step shapes_to_scale",
}
_MODULE_OF = {name: module for module, names in _DRAWN_BY.items() for name in names.split()}

__all__ = ["COLOURS", *_MODULE_OF]


def __getattr__(name: str) -> object:
    """A figure's function, with the module that draws it."""
    if name not in _MODULE_OF:
        raise AttributeError(f"There is no figure {name!r}. There are: {', '.join(_MODULE_OF)}.")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
