"""What the crash lab says of a run: what a crash has cost, and whether the curve goes on as if there had been none."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from course_utils import predict
from course_utils.labs.crash.asked import CRASHES, PARTS, RUNS, Life, Plan, Story
from course_utils.quantities import count_text, listed

_steps = partial(count_text, of="step")
WITHOUT: Mapping[str, str] = {
    "model": "fresh weights",
    "optimizer": "gradient averages from 0",
    "step": "a second warm-up",
    "data": "the first batches",
    "generators": "dropout's first masks",
}


def meaning(plan: Plan, story: Story) -> str:
    """What the latest crash has cost, where the run is now, whether its losses are the same, and what comes next."""
    life = story.now
    if not story.reference:
        return "Nothing has run: a process that can be killed needs a kernel."
    if story.example and plan.left_out:
        tried = "Not tried yet: in this example all was restored. Press Train, Kill it and Resume, and see what comes of"
        return f"{tried} {_begins_with(plan)}."
    if life.end in CRASHES:
        return f"{ended(life)}. {_what_is_left(story)}"
    if not life.losses:
        return "A new process starts."
    example = "An example, made without a process. " * story.example
    return f"{example}{_where_it_is(story)} {_comparison(story)}"


def ended(life: Life) -> str:
    """How a process ended, and where."""
    return f"{life.end.capitalize()} {f'after step {life.last}' if life.losses else 'before it made a step'}"


def _what_is_left(story: Story) -> str:
    if story.newest is None:
        return "Nothing was saved, so all is lost. Press Train."
    torn = f"The file of step {story.unfinished} is not whole, and is never loaded. " * bool(story.unfinished)
    lost = story.now.last - story.newest
    cost = f"{_steps(lost)} will be done again" if lost else "no step is lost"
    return f"{torn}The newest whole checkpoint is of step {story.newest}: {cost}. Press Resume."


def _where_it_is(story: Story) -> str:
    """How far it is; when it is complete, what ended the life before it, and what that cost."""
    if story.now.end == RUNS:
        saved = "nothing is saved yet" if story.newest is None else f"step {story.newest} is saved"
        return f"Process {len(story.lives)} has made step {story.now.last} of {story.steps}; {saved}."
    if not story.lost:
        return "No crash."
    again = f"{_steps(story.lost[-1])} had to be done again" if story.lost[-1] else "no step was lost"
    return f"{ended(story.lives[-2])}; the newest whole checkpoint was of step {story.now.first}: {again}."


def _comparison(story: Story) -> str:
    life, same, parts = story.now, story.agreement, story.left_out
    if same.exact and not parts:
        equal = f"{same.equal} of {same.compared} losses equal those of the run never killed"
        return f"From step {life.first + 1} on, {equal}, to the last bit."
    begun = "Resumed" if set(parts) == set(life.left_out) else "Resumed from a run"
    since = f"{begun} without {_counted(parts)}:" if parts else "Unexpectedly,"
    differ = f"its losses first differ at step {same.first}, by {same.largest:.2g} at most"
    shows = differ if same.first else "it shows nothing yet"
    return f"{since} {shows}; {same.equal} of {same.compared} are equal."


def _counted(parts: Sequence[str]) -> str:
    return listed(parts) if len(parts) < 3 else f"{len(parts)} of its {len(PARTS)} parts"


def next_process(plan: Plan) -> str:
    """What Train and Resume would do, as the controls stand."""
    has = f"would begin with {_begins_with(plan)}" if plan.left_out else "restores all it needs"
    return f"Next: up to step {plan.steps}, {plan.pause_ms} ms or more a step; Resume {has}."


def _begins_with(plan: Plan) -> str:
    return listed([WITHOUT[part] for part in plan.left_out])


def account(plan: Plan, story: Story) -> Iterator[tuple[str, str, str]]:
    """Rows of what, predicted with the numbers filled in, counted; the head first."""
    same, lost, parts = story.agreement, story.lost, story.left_out
    yield "", "predicted", "measured"
    expected, found = "crashed at - newest whole checkpoint", "no resume yet"
    if story.now.end in CRASHES:
        newest = story.newest or 0
        expected = f"{story.now.last} - {newest} = {_steps(story.now.last - newest)}"
    elif lost:
        expected = f"{story.lives[-2].last} - {story.now.first} = {_steps(lost[-1])}"
        found = f"{_steps(story.done_again)}{' so far' * (story.done_again < lost[-1])}"
    yield "done again after the crash", expected, found
    expected = f"not all: without {_counted(parts)}" if parts else f"all {same.compared}"
    found = (
        f"{same.equal} of {same.compared}{', to the last bit' * same.exact}" if same.compared else "none yet"
    )
    yield "losses equal to a run never killed", expected, found
    every, costs = min(plan.every, plan.steps), story.costs  # a run saves at its end too
    cost = predict.lost_steps(every)
    many = f"{cost:g} step{'s' * (cost != 1)}"
    expected = f"({every} - 1) / 2 = {many} on average, {every} if killed in a save"
    crashes = f"{len(costs)} crash{'es' * (len(costs) > 1)}"
    found = f"{sum(costs) / len(costs):.3g} in {crashes}" if costs else "none yet"
    yield "a crash costs, saves as set now", expected, found
