"""What the crash lab says of a run: what a crash has cost, and whether the curve goes on as if there had been none."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from course_utils.labs.crash_story import (
    CRASHES,
    DONE,
    ENDED,
    KILLED,
    KILLED_SAVING,
    RUNS,
    STOPPED,
    Agreement,
    Life,
    Story,
    agreement,
)
from course_utils.quantities import Number, count_text

_steps = partial(count_text, of="step")
MOST_TERMS = 6
WITHOUT: Mapping[str, str] = {
    "model": "its weights are fresh",
    "optimizer": "its averages of the gradients begin at 0",
    "step": "its learning rate warms up once more",
    "data": "the first batches come again",
    "generators": "dropout draws the first masks again",
}


def listed(names: Sequence[object]) -> str:
    """Names as a sentence has them.

    >>> listed(["model", "step", "data"])
    'model, step and data'
    """
    *first, last = map(str, names)
    return f"{', '.join(first)} and {last}" if first else last


def meaning(story: Story, reference: Sequence[Number], without: Sequence[str] = ()) -> str:
    """What the latest crash has cost, where the run is now, whether its losses are the same, and what comes next."""
    life = story.now
    said = ["An example, made without a process." if story.example else ""]
    if life.end in CRASHES:
        said += [f"{ended(life)}.", _what_is_left(story)]
    elif life.losses:
        said += [
            _resumed(story),
            _where_it_is(story) if life.end == RUNS else "",
            _comparison(story, reference),
        ]
    else:
        said += [_resumed(story), "A new process starts."]
    if without and life.end != RUNS:
        said.append(f"A resume would now go on without {_what_that_does(without)}.")
    return " ".join(filter(None, said))


def ended(life: Life) -> str:
    """How a process ended, and where."""
    if life.end == KILLED_SAVING:
        return f"Killed after step {life.last}, while it was saving"
    how = {KILLED: "Killed", STOPPED: "Stopped", ENDED: "Ended", DONE: "Complete"}[life.end]
    return f"{how} after step {life.last}" if life.losses else f"{how} before it made a step"


def _resumed(story: Story) -> str:
    """What ended the life before this one, and what it cost; nothing where there was none."""
    if len(story.lives) < 2:
        return ""
    before, now = story.lives[-2:]
    again = (
        f"{_steps(before.last - now.first)} had to be done again"
        if before.last > now.first
        else "no step was lost"
    )
    return f"{ended(before)}; the newest whole checkpoint was of step {now.first}: {again}."


def _what_is_left(story: Story) -> str:
    if story.newest is None:
        return "Nothing was saved, so all is lost, and Train begins again."
    lost = story.now.last - story.newest
    cost = f"{_steps(lost)} will be done again" if lost else "no step is lost"
    unfinished = (
        ""
        if story.unfinished is None
        else f"The file of step {story.unfinished} is not whole, and is never loaded. "
    )
    return f"{unfinished}The newest whole checkpoint is of step {story.newest}: {cost}. Press Resume."


def _where_it_is(story: Story) -> str:
    saved = "nothing is saved yet" if story.newest is None else f"step {story.newest} is saved"
    return f"Process {len(story.lives)} has made step {story.now.last} of {story.steps}; {saved}."


def _comparison(story: Story, reference: Sequence[Number]) -> str:
    life, same = story.now, agreement(story.now, reference)
    if not life.first and same.exact:
        return "" if life.end == RUNS else f"No crash, and {_equal(same)}, to the last bit."
    if not story.left_out:
        wrong = f"It should go on as if nothing had been, but it departs {_where(same)}; {_equal(same)}."
        return f"After it {_equal(same)}, to the last bit." if same.exact else wrong
    why = "; ".join(WITHOUT[part] for part in life.left_out)
    since = (
        f"without {listed(life.left_out)}: {why}"
        if why
        else f"from a run that had lost its {listed(story.left_out)}"
    )
    seen = "nothing shows yet" if same.exact else f"it departs {_where(same)}"
    return f"Resumed {since}. {seen.capitalize()}; {_equal(same)}."


def _what_that_does(parts: Sequence[str]) -> str:
    return f"{listed(parts)}: {'; '.join(WITHOUT[part] for part in parts)}"


def _equal(same: Agreement) -> str:
    return f"{same.equal} of {same.compared} losses equal those of the run never killed"


def _where(same: Agreement) -> str:
    return f"at step {same.first}, by {same.largest:.2g} at most (step {same.at})"


# The account: what is predicted, with the numbers filled in, and what was counted.


def account(story: Story, reference: Sequence[Number], every: int) -> Iterator[tuple[str, str, str]]:
    """Rows of what, predicted, measured; the head first."""
    life, same, lost = story.now, agreement(story.now, reference), story.lost
    yield "", "predicted", "measured"
    if lost:
        again = f"{story.lives[-2].last} - {life.first} = {_steps(lost[-1])}"
        so_far = " so far" if story.done_again < lost[-1] else ""
        yield "done again after the crash", again, f"{_steps(story.done_again)}{so_far}"
    else:
        yield "done again after a crash", "crashed at - newest whole checkpoint", "no resume yet"
    parts = story.left_out
    expected = f"all {same.compared}"
    if parts:
        expected = f"not all: without {listed(parts) if len(parts) < 3 else f'{len(parts)} parts'}"
    found = f"{same.equal} of {same.compared}{', to the last bit' if same.exact else ''}"
    yield "losses equal to a run never killed", expected, found if same.compared else "none yet"
    terms = " + ".join(map(str, lost)) if len(lost) <= MOST_TERMS else f"{sum(lost)}"
    made = f"{life.last} + {terms} = {_steps(life.last + sum(lost))}" if lost else _steps(life.last)
    yield "steps made by all processes", made, f"{_steps(sum(len(each.losses) for each in story.lives))}"
    cost = f"({every} - 1) / 2 = {(every - 1) / 2:g} steps, {every} while it saves"
    costs = [n for n, before in zip(lost, story.lives, strict=False) if before.end in CRASHES]
    found = (
        f"{sum(costs) / len(costs):.3g} in {len(costs)} crash{'es' * (len(costs) > 1)}"
        if costs
        else "none yet"
    )
    yield "a crash costs, saves as set now", cost, found


# The processes and the folder.


def row(number: int, life: Life) -> str:
    """Which process it is, and what became of it."""
    if life.end == DONE:
        return f"{number} · complete"
    return (
        f"{number} · {life.end}, step {life.last}"
        if life.end == RUNS
        else f"{number} · {life.end} at {life.last}"
    )


def folder(story: Story) -> tuple[str, str]:
    """What is whole in it, and what is not."""
    size = f"; the newest has {story.file_bytes:,} bytes" if story.file_bytes else ""
    whole = f"step {listed(sorted(story.whole))}, whole{size}" if story.whole else "nothing yet"
    return whole, "" if story.unfinished is None else f"step {story.unfinished}, not whole: never loaded"
