"""Which plan trains a model in the fewest days is decided where memory, products and the network meet.

After two minutes the reader has seen that a plan may fit and be slow, that larger micro-batches send less and that
recomputing makes room for them, and how far their own plan is from the best one.
"""

from functools import cached_property
from types import SimpleNamespace

from course_utils.accountant.file import TERMS
from course_utils.accountant.plans import Planner
from course_utils.labs.lab import Change, Lab
from course_utils.labs.plan.asked import LEVELS, PRESETS, Asked, Found, planner
from course_utils.labs.plan.picture import view


class PlanLab(Lab):
    """A plan against its GPUs' memory, their products, their network, and the best plan."""

    name = "Plan lab"
    asks, presets = Asked, PRESETS
    rows = (("level",), ("recipe", "stage", "over_node"), ("batch", "recomputed", "minutes"))
    view = staticmethod(view)

    @cached_property
    def planners(self) -> dict[str, Planner]:
        """Each level, seen by the reader's terms where they are kept and right, and by ours where not."""
        from course_utils import accountant  # now, since a page has no such file

        terms = SimpleNamespace(**{name: getattr(accountant, name) for name in TERMS})
        return {level: Planner(task, terms) for level, task in LEVELS.items()}

    def known(self, asked: Asked, found: Found) -> Found:
        """What the reader's accountant says of the plan."""
        return {asked: self.planners[asked.level].outcome(asked.plan)}

    def show_the_best(self, asked: Asked, found: Found) -> Change:
        """Move the controls to the plan that takes the fewest days."""
        outcome = found.get(asked) or planner(asked.level).outcome(asked.plan)
        return Change(vars(outcome.best))

    actions = {"Show the best plan": show_the_best}
