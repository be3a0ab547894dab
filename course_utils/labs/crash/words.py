"""What the crash lab says of a run: what a crash has cost, and whether the curve goes on as if there had been none."""

from collections.abc import Iterator, Mapping

from course_utils import predict
from course_utils.labs.crash.asked import CRASHES, RUNS, Plan, Story
from course_utils.quantities import count_text, listed

WITHOUT: Mapping[str, str] = {
    "model": "fresh weights",
    "optimizer": "gradient averages from 0",
    "step": "a second warm-up",
    "data": "the first batches",
    "generators": "dropout's first masks",
}
# The first loss is computed before averages or a learning rate are used.
NOT_READ_AT_ONCE = {"optimizer"}, {"step"}, {"optimizer", "step"}


def meaning(plan: Plan, story: Story) -> str:
    """What the latest crash has cost, where the run is now, whether its losses are the same, and what comes next."""
    life = story.now
    if story.example and plan.left_out != life.left_out:
        return "Not tried yet, as in this example all was restored. Press Train, Kill it and Resume."
    if life.end in CRASHES:
        saved, press = (f"step {story.newest}", "Resume") if story.newest else ("no step", "Train")
        return f"{life.end.capitalize()} after step {life.last}, and {saved} is saved. Press {press}."
    if not life.losses:
        return "A new process starts."
    begun = "An example, made without a process. " * story.example
    if life.end == RUNS:
        begun = f"Process {len(story.lives)} has made step {life.last} of {story.steps}. "
    return f"{begun}{_comparison(story)}"


def _comparison(story: Story) -> str:
    """Whether the losses are those of the run never killed."""
    life, gaps = story.now, story.gaps
    differ = [step for step, gap in gaps.items() if gap]
    since = f"Without {listed(life.left_out)}" if life.left_out else f"From step {life.first + 1} on"
    said = f"{since}, {_equal(story)} losses equal those of the run never killed"
    if not differ:
        return f"{said}, to the last bit."
    return f"{said}; they first differ at step {differ[0]}, by up to {max(gaps.values()):.2g}."


def _equal(story: Story) -> str:
    gaps = story.gaps.values()
    return f"{sum(not gap for gap in gaps)} of {len(gaps)}"


def next_process(plan: Plan) -> str:
    """What Resume would do, as the ticks stand."""
    lacks = listed([WITHOUT[part] for part in plan.left_out])
    return f"Next: Resume {f'would begin with {lacks}' if lacks else 'restores all it needs'}."


def rows(plan: Plan, story: Story) -> Iterator[tuple[str, str, str]]:
    """The table's rows: a name, the prediction with its numbers, and the count; the head first."""
    life, every = story.now, min(plan.every, plan.steps)  # a run saves at its end too
    yield "", "predicted", "measured"
    expected, found = "crashed at - newest whole checkpoint", "no resume yet"
    if story.crash:
        ended, newest = story.crash
        expected = f"{ended.last} - {newest} = {count_text(ended.last - newest, 'step')}"
        if ended is not life:
            twice = ended.by_step.keys() & life.by_step.keys()
            found = f"{count_text(len(twice), 'step')}{' so far' * (life.end == RUNS)}"
    yield "done again after the crash", expected, found
    expected = "not all" if life.left_out else "all"
    if {*life.left_out} in NOT_READ_AT_ONCE and not any(earlier.left_out for earlier in story.lives[:-1]):
        expected = "only the first"
    yield "losses equal to a run never killed", expected, _equal(story) if story.gaps else "none yet"
    by_halves, at_most = (f"({every} - 1) / 2 = ", "") if plan.steps % every == 0 else ("", "at most ")
    lost = f"{predict.lost_steps(every, plan.steps):.3g} on average, {at_most}{every} if killed in a save"
    yield "steps that a crash costs, as set now", f"{by_halves}{lost}", ""
