"""This machine and the rates that it was measured to reach, and recordings of other machines.

The module `by_us` has what this course measured on two GPUs, besides their recordings.

`python -m course_utils.chapters.flops.new_recording` records this machine, in under eight
minutes, for those who have none like it.
"""

import importlib

from course_utils.core.datasheets import MACHINES, Machine, machine_named
from course_utils.subjects.machines.recording import Recording, Workload, forecast_table, recordings
from course_utils.subjects.machines.schema import MatmulSize

__all__ = [
    "MACHINES",
    "Machine",
    "MatmulSize",
    "Recording",
    "Workload",
    "device",
    "forecast_table",
    "machine_named",
    "recordings",
    "this_machine",
]


def __getattr__(name: str) -> object:
    """Import `at_hand` only when it is asked for: recordings and data sheets need no torch."""
    if name not in ("device", "this_machine"):
        raise AttributeError(f"There is no {name!r} in machines. There are: {', '.join(__all__)}.")
    return getattr(importlib.import_module(f"{__name__}.at_hand"), name)
