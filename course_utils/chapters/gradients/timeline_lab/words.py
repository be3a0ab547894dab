"""What the timeline lab says: whether a step fits, when it is fullest, and its bytes in a table."""

from collections.abc import Sequence

from course_utils.chapters.gradients.step_over_time import Moment, Step, rate_for
from course_utils.chapters.gradients.timeline_lab.asked import FULLEST, HELD, MOMENTS, Asked
from course_utils.chapters.gradients.trained_models import about_experts, with_parameters
from course_utils.core.datasheets import machine_named
from course_utils.core.predict.storages import Held
from course_utils.core.say import Guess, seconds_text
from course_utils.core.say import decimal_bytes_text as short
from course_utils.engine.labs.draw import marks

# The parts whose name for a reader differs from the field's.
PARTS = {"passing": "in passing", "logits": "logits and loss"}
ASKS = {
    HELD: "How full is the memory? Set a mark at each eighth of the step: "
    "100 is as full as it ever gets. Then press Show.",
    FULLEST: "When is the memory fullest? Set the mark at that moment of the step, and press Show.",
}


def title(asked: Asked, step: Step) -> str:
    """Return the headline: model, tokens, machines, and a step's seconds by the data sheet.

    It begins like "Llama 3 8B: a step of 1 × 8,192 tokens on each of 8 × H100 SXM".
    """
    tokens = f"{asked.batch:,} × {asked.tokens:,} tokens"
    machines = f"one {asked.machine}"
    if asked.machines > 1:
        machines = f"each of {asked.machines:,} × {asked.machine}"
    sheet = "its data sheet"
    rate = rate_for(machine_named(asked.machine), asked.dtype)
    if rate != asked.dtype:
        sheet += f", at {rate}'s rate: it has none for {asked.dtype}"
    seconds = seconds_text(step.seconds)
    return f"{with_parameters(asked.model)}: a step of {tokens} on {machines}, {seconds} by {sheet}"


def when(moment: Moment) -> str:
    """Return the operation of a moment in words, with its phase and layer."""
    operation = f"{moment.phase}, {moment.where}"
    if moment.layer is None:
        return operation
    return f"{operation} of layer {moment.layer + 1}"  # readers count layers from 1


def meaning(asked: Asked, step: Step, guesses: Sequence[Guess]) -> str:
    """Return the text below the picture.

    Before the reveal, the text asks for a guess. Afterwards it says whether the step fits, when the
    memory is fullest, and how far off the marks are.
    """
    if asked.hides:
        return ASKS[asked.ask]
    memory = machine_named(asked.machine).bytes
    verdict = "Fits" if step.most <= memory else "Does not fit"
    sentence = (
        f"{verdict}: at its fullest moment ({when(step.fullest)}) "
        f"a GPU holds {short(step.most)} of {short(memory)}."
    )
    said = (sentence, about_experts(asked.model), _on_marks(asked, guesses))
    return " ".join(filter(None, said))


def _on_marks(asked: Asked, guesses: Sequence[Guess]) -> str:
    """Return a sentence on the reader's marks; an empty string if none is set.

    Of several marks, the one that is farthest off is named. The single mark of the fullest moment
    is named beside the right place.
    """
    if asked.ask != FULLEST:
        return marks.farthest(guesses)
    if not guesses:
        return ""
    (guess,) = guesses
    return f"It is at {guess.measured:.0f} % of the step; your mark is at {guess.said} %."


def table(asked: Asked, step: Step, measured: Sequence[int] | None) -> list[list[str]]:
    """Return a table of the bytes of each part at the chosen and at the fullest moment.

    `measured` has the bytes at each operation of a real step, or is None if no step was measured.
    """
    now = step.at(asked.moment / MOMENTS).held
    most = step.fullest.held
    rows = [["bytes on each machine", "at this moment", "at the fullest"]]
    for part, now_bytes, most_bytes in zip(Held._fields, now, most, strict=True):
        rows.append([part, f"{now_bytes:,}", f"{most_bytes:,}"])
    rows.append(["total", f"{now.total:,}", f"{most.total:,}"])
    # What an optimizer copies during its step is not predicted, see `predict.timeline`.
    rows.append(["copies in an optimizer's own step", "left out", "left out"])
    if measured:
        rows.append(["measured at its fullest", "", f"{max(measured):,}"])
    return rows
