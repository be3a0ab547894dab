"""Which plan trains a model in the fewest days depends on memory, products and the network.

After two minutes the reader has seen that a plan may fit and be slow, that larger micro-batches
send less, that recomputing makes space for them, and how far their own plan is from the best one.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cached_property
from types import SimpleNamespace

from course_utils.chapters.checkpointing.plan_lab.asked import (
    LEVELS,
    PRESETS,
    Asked,
    Found,
    is_best,
    outcome_of,
)
from course_utils.chapters.checkpointing.plan_lab.picture import view
from course_utils.chapters.checkpointing.plans import Plan, Planner
from course_utils.core.accountant_file import TERMS
from course_utils.core.say.language import translated
from course_utils.engine.labs.lab import Change, Lab


class PlanLab(Lab):
    """A plan against its GPUs' memory, their products, their network, and the best plan."""

    name = "Plan lab"
    asks = Asked
    presets = PRESETS
    found = Found()
    rows = (
        ("level",),
        ("recipe", "stage", "over_node"),
        ("batch", "recomputed", "minutes"),
    )
    view = staticmethod(view)

    @cached_property
    def planners(self) -> dict[str, Planner]:
        """A planner for each level. A term is the reader's if it is right, else the course's."""
        # Imported late, because a page without a kernel has no file of the reader's.
        from course_utils.chapters import accountant

        # The last three are no exercises. They are the course's, and call the reader's terms.
        names = (*TERMS, "moments", "gathered_bytes", "rest_bytes")
        terms = SimpleNamespace(**{name: getattr(accountant, name) for name in names})
        return {level: Planner(task, terms) for level, task in LEVELS.items()}

    def known(self, asked: Asked, found: Found) -> Found:
        """Return `found` with the plan's outcome by the reader's accountant.

        The session calls this before each view. A page without a kernel has no such accountant, so
        there `outcome_of` takes the course's.
        """
        outcome = self.planners[asked.level].outcome(asked.plan)
        return replace(found, outcomes={asked: outcome})

    def noted(self, asked: Asked, found: Found) -> Callable[[Found], Found] | None:
        """Return a function that marks the level as solved; None if it is not solved now.

        The level is solved if the reader finds its best plan without having been shown it. A
        function is returned because the session applies it to what is known: see `Lab.noted`.
        """
        if asked.level in found.shown or asked.level in found.solved:
            return None
        if not is_best(outcome_of(asked, found)):
            return None

        def with_solved(known: Found) -> Found:
            """Return `known` with the level marked as solved."""
            return replace(known, solved=known.solved | {asked.level})

        return with_solved

    def show_the_best(self, asked: Asked, found: Found) -> Change:
        """Move the controls to the plan that takes the fewest days.

        The fields of a Plan have the names of the controls, so a plan's fields are their values.
        """
        outcome = outcome_of(asked, found)
        own_plan = {field.name: getattr(asked, field.name) for field in fields(Plan)}

        def with_shown(known: Found) -> Found:
            """Return `known` with the reader's plan to go back to, and the level as shown.

            A level that was shown can't be solved any more.
            """
            if own_plan == vars(outcome.best):
                return known  # the controls have the best plan already
            shown = known.shown
            # A plan that differs, but takes no more days, is a best one, too. Whoever has found it
            # has solved the level, and learns nothing new.
            if not is_best(outcome):
                shown = shown | {asked.level}
            return replace(known, shown=shown, own={**known.own, asked.level: own_plan})

        return Change(vars(outcome.best), with_shown)

    def back_to_mine(self, asked: Asked, found: Found) -> Change:
        """Move the controls back to the reader's plan, from before the best one was shown.

        ValueError if the best plan of this level was not shown yet.
        """
        if asked.level not in found.own:
            raise ValueError(
                translated(
                    "There is no plan to go back to in this level: the best one was not shown yet."
                )
            )
        return Change(found.own[asked.level])

    actions = {"Show the best plan": show_the_best, "Back to mine": back_to_mine}
