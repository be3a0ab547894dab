"""Computing segments of blocks again trades FLOPs for bytes. The best length can be predicted, and is seldom √L.

After two minutes the reader has seen the frontier of bytes and FLOPs, where on it the least is and why, that a real
step lies on it exactly, and when nothing is gained.
"""

from collections.abc import Iterator

from course_utils.labs.lab import Lab, Progress
from course_utils.labs.recompute.asked import PRESETS, Found, Plan
from course_utils.labs.recompute.picture import view


class RecomputeLab(Lab):
    """Bytes kept against FLOPs, for every way to compute blocks again."""

    name = "Recompute lab"
    asks, presets = Plan, PRESETS
    rows = (("kind", "layers"), ("segment", "early_stop", "scores_again"), ("batch", "sequence", "width"))
    view = staticmethod(view)

    def measure_chosen(self, plan: Plan, found: Found) -> Iterator[Progress]:
        """Run a real step as it is chosen, and a plain one to compare it with."""
        from course_utils.labs.recompute import jobs

        return jobs.measured(list(dict.fromkeys([plan.all_kept, plan])))

    def measure_all(self, plan: Plan, found: Found) -> Iterator[Progress]:
        """Run a real step for every point of the frontier."""
        from course_utils.labs.recompute import jobs

        return jobs.measured(plan.frontier)

    jobs = {"Measure": measure_chosen, "Measure all segments": measure_all}
    needs_kernel = {*jobs}
