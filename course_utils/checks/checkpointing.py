"""The exercises of notebook 08."""

from course_utils.checks.accountant import interval, lost_share, step_bytes, step_flops  # noqa: F401  the accountant's
from course_utils.checks.whole_file import write_whole  # noqa: F401  exercises, too
