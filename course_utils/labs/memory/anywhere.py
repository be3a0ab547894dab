"""What needs no kernel: moving the controls until it fits."""

from course_utils import predict
from course_utils.labs.lab import Change
from course_utils.labs.memory.asked import Found, Run
from course_utils.labs.memory.words import hopeless_as


def make_it_fit(run: Run, found: Found) -> Change:
    """The first of the smallest remedies."""
    plan = run.plan
    if plan.fits:
        raise ValueError("It fits as it is.")
    remedies = predict.remedies(plan)
    if not remedies:
        raise ValueError(hopeless_as(plan))
    return Change(remedies[0])
