"""Where the memory and the compute go when a neural network is trained.

The package has five rooms. `core` says, predicts and measures numbers. `subjects` is what is
counted and trained. `engine` judges answers, moves labs and draws figures, whatever they are about.
`chapters` has a folder for each notebook. `stage` is what surrounds a notebook, and nothing imports
it.

A notebook imports the parts below from here, without naming their room:
`from course_utils import measure, models`.
"""

import importlib
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

__all__ = list(_ROOM_OF)


def __getattr__(name: str) -> ModuleType:
    """Import the part when it is first asked for."""
    if name not in _ROOM_OF:
        raise AttributeError(
            f"There is no {name!r} in course_utils. There are: {', '.join(__all__)}."
        )
    room = _ROOM_OF[name]
    return importlib.import_module(f"course_utils.{room}.{name}")


def __dir__() -> list[str]:
    return __all__
