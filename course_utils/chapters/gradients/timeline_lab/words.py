"""What the timeline lab says: whether a step fits, when it is fullest, and its bytes in a table."""

from collections.abc import Sequence

from course_utils.chapters.gradients.step_over_time import Moment, Step, rate_for
from course_utils.chapters.gradients.timeline_lab.asked import FULLEST, HELD, Asked
from course_utils.core.datasheets import machine_named
from course_utils.core.predict.storages import Held
from course_utils.core.say import Guess, seconds_text
from course_utils.core.say import decimal_bytes_text as short
from course_utils.engine.labs.draw import marks

PARTS = {"passing": "in passing"}
ASKS = {
    HELD: "How full is the memory? Set a mark at each eighth of the step: 100 is as full as it ever gets. Then press Show.",
    FULLEST: "When is the memory fullest? Set the mark at that moment of the step, and press Show.",
}


def title(asked: Asked, step: Step) -> str:
    """What is trained on what, and how long a step takes at the speed of the data sheet."""
    count, tokens = asked.machines, f"{asked.batch:,} × {asked.tokens:,} tokens"
    where = f"{f'each of {count:,} ×' if count > 1 else 'one'} {asked.machine}"
    counts = rate_for(machine_named(asked.machine), asked.dtype)
    sheet = "its data sheet"
    if counts != asked.dtype:
        sheet += f", at {counts}'s rate: it has none for {asked.dtype}"
    return f"{asked.model}: a step of {tokens} on {where}, {seconds_text(step.seconds)} by {sheet}"


def when(moment: Moment) -> str:
    """The operation of a moment, with its phase and layer."""
    layer = "" if moment.layer is None else f" of layer {moment.layer + 1}"
    return f"{moment.phase}, {moment.where}{layer}"


def meaning(asked: Asked, step: Step, guesses: Sequence[Guess]) -> str:
    """What to draw; or whether the step fits, when it is fullest, and how far off the farthest mark was."""
    if asked.hides:
        return ASKS[asked.ask]
    most, memory = step.fullest.held.total, machine_named(asked.machine).bytes
    full = f"at its fullest moment ({when(step.fullest)}) a machine holds {short(most)} of {short(memory)}."
    ends = "" if asked.ask == FULLEST else marks.farthest(guesses)
    places = [
        f"It is at {one.measured:.0f} % of the step; your mark is at {one.said} %."
        for one in guesses
    ]
    return (
        f"{'Fits' if most <= memory else 'Does not fit'}: {full} {ends or ''.join(places)}".strip()
    )


def table(asked: Asked, step: Step, measured: Sequence[int] | None) -> list[list[str]]:
    """Every byte at the chosen moment and at the fullest; and the most that was measured."""
    now, most = step.at(asked.moment / 100).held, step.fullest.held
    rows = [*zip(Held._fields, now, most, strict=True), ("total", now.total, most.total)]
    rows += [("measured at its fullest", None, max(measured))] if measured else []
    head = ["bytes on each machine", "at this moment", "at the fullest"]
    return [
        head,
        *([part, *("" if n is None else f"{n:,}" for n in sides)] for part, *sides in rows),
    ]
