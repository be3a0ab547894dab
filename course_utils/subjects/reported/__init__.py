"""Training runs that others published, and the predictions of `predict` for them.

Each run has its source, commit and licence, and a note on what was not stated. Nothing in these
runs was measured by this course, and nothing in `predict` is fitted to them. Predictions and
reported values meet in a `Comparison`.
"""

from course_utils.subjects.reported.beside import memory, mfu
from course_utils.subjects.reported.runs import RUNS, PublishedRun, run_named
