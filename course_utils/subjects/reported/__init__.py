"""Training runs that others published, and what `predict` says of them.

Facts with source, commit and licence, and what they do not say. Nothing of them was measured by this course, and
nothing in `predict` is fitted to them. Prediction and report meet in a `Comparison`.
"""

from course_utils.subjects.reported.beside import memory, mfu
from course_utils.subjects.reported.runs import RUNS, PublishedRun, run_named
