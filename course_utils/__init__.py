"""Where the memory and the compute go when a neural network is trained.

The package has five rooms. `core` says, predicts and measures numbers. `subjects` is what is
counted and trained. `engine` judges answers, moves labs and draws figures, whatever they are about.
`chapters` has a folder for each notebook. `stage` is what surrounds a notebook, and nothing imports
it.

A notebook imports the parts below from here, without naming their room:
`from course_utils import measure, models`. So it does with `ask`, `reveal` and `table`, three
functions that nearly all notebooks call.
"""

import importlib
from collections.abc import Callable
from types import ModuleType

_ROOM_OF = {
    "floats": "core",
    "layout": "core",
    "measure": "core",
    "predict": "core",
    "checkpoints": "subjects",
    "machines": "subjects",
    "models": "subjects",
    "reported": "subjects",
    "training": "subjects",
    "accountant": "chapters",
    "figures": "chapters",
    "labs": "chapters",
}

_MODULE_OF = {"ask": "engine.guessing", "reveal": "core.say", "table": "core.say"}

__all__ = [*_ROOM_OF, *_MODULE_OF]


def __getattr__(name: str) -> ModuleType | Callable[..., object]:
    """Import the part or the function when it is first asked for."""
    if name in _MODULE_OF:
        module = importlib.import_module(f"course_utils.{_MODULE_OF[name]}")
        return getattr(module, name)
    if name not in _ROOM_OF:
        raise AttributeError(
            f"There is no {name!r} in course_utils. There are: {', '.join(__all__)}."
        )
    room = _ROOM_OF[name]
    return importlib.import_module(f"course_utils.{room}.{name}")


def __dir__() -> list[str]:
    return __all__
