"""Run something and count what it cost, or look at what is stored. There are no formulas here."""

from course_utils.core.measure.accounting import Account, account, step_peak_bytes
from course_utils.core.measure.available import free_bytes, memory_ran_out
from course_utils.core.measure.cgroups import memory_bytes
from course_utils.core.measure.counting import flops
from course_utils.core.measure.formats import DTYPES, SMALL_FORMATS, every_value
from course_utils.core.measure.memory import (
    optimizer_bytes,
    peak_saved_bytes,
    saved_bytes,
    saved_bytes_over_time,
    storage_bytes,
    tensors_in,
)
from course_utils.core.measure.moments import Moment, Watch, allocated_bytes, peak_bytes
from course_utils.core.measure.on_cpu import cpu_threads
from course_utils.core.measure.results import MeasurementProgress, Timing
from course_utils.core.measure.timing import time_call, timing_steps
