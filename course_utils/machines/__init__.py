"""What machine this is, what it can really reach, and what others were measured to reach.

`python -m course_utils.machines` records this machine, in under eight minutes, for those who have none like it.
"""

from course_utils.datasheets import MACHINES, Machine, machine_named
from course_utils.machines.at_hand import device, this_machine
from course_utils.machines.recorded import (
    Recording,
    Size,
    Source,
    Workload,
    over_prediction_table,
    recordings,
)

__all__ = [
    "MACHINES",
    "Machine",
    "Recording",
    "Size",
    "Source",
    "Workload",
    "device",
    "machine_named",
    "over_prediction_table",
    "recordings",
    "this_machine",
]
