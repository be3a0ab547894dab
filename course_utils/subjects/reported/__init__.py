"""Training runs that others published, and what `predict` says of them.

Each run has its source, commit and licence, and says what was not stated. Nothing of them was
measured by this course, and nothing in `predict` is fitted to them. Prediction and report meet in a
`Comparison`.
"""

from course_utils.subjects.reported.beside import memory, mfu
from course_utils.subjects.reported.runs import RUNS, PublishedRun, run_named
