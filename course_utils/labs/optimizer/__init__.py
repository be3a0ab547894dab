"""Curvature bounds the learning rate: beyond 2/λ, SGD's error grows with every step.

After two minutes the reader has seen the steepest direction set that bound and the flattest one the pace; momentum
move the bound by 1 + μ and quicken the pace; and those that divide the gradient by its size know no such bound, for to
them the learning rate is a length. Bound and pace are predicted, beside the race itself.
"""

import time
from collections.abc import Iterator
from itertools import chain

from course_utils.labs.lab import Change, Lab, Progress
from course_utils.labs.optimizer.asked import PRESETS, Race
from course_utils.labs.optimizer.picture import view

FRAMES, FRAME_S = 60, 0.05


class OptimizerLab(Lab):
    """A race down a surface, predicted and run."""

    name = "Optimizer lab"
    asks, presets = Race, PRESETS
    rows = (
        ("surface", "racing"),
        ("lr", "momentum", "beta2", "weight_decay"),
        ("steepness", "noise", "seed", "steps", "step"),
    )
    view = staticmethod(view)

    def race(self, asked: Race, found: object) -> Iterator[Progress]:
        """Look at one step after the other."""
        for frame in range(FRAMES + 1):
            step = frame * asked.steps // FRAMES
            yield Progress(frame / FRAMES, f"Step {step} of {asked.steps}.", Change({"step": step}))
            time.sleep(FRAME_S)

    def check(self, asked: Race, found: object) -> Iterator[Progress]:
        """Let torch.optim take the same steps, and compare every coordinate at every step."""
        from course_utils.labs.optimizer.jobs import torchs_points

        apart, runs = {}, asked.descents
        for name, run in runs.items():
            yield Progress(len(apart) / len(runs), f"{name}: {asked.steps} steps.")
            theirs = chain.from_iterable(torchs_points(asked, name))
            pairs = zip(chain(*run.points[1:]), theirs, strict=False)
            apart[name] = max((abs(a - b) / max(1.0, abs(b)) for a, b in pairs), default=0.0)
        steps, worst = sum(len(run.lengths) for run in runs.values()), max(apart, key=apart.__getitem__)
        said = f"torch.optim took the same {steps:,} steps ({', '.join(apart)})"
        yield Progress(1, f"{said}: the largest difference in a coordinate is {apart[worst]:.1e}, {worst}'s.")

    jobs = {"Race": race, "Check against torch": check}
    needs_kernel = {"Check against torch"}
