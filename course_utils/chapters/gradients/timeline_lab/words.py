"""What the timeline lab says: whether a step fits, when it is fullest, and its bytes in a table."""

from collections.abc import Sequence

from course_utils.chapters.gradients.step_over_time import Moment, Step, held_text, rate_for
from course_utils.chapters.gradients.timeline_lab.asked import FULLEST, HELD, MOMENTS, Asked
from course_utils.chapters.gradients.trained_models import about_experts, with_parameters
from course_utils.core.datasheets import machine_named
from course_utils.core.predict.storages import Held
from course_utils.core.say import Guess, seconds_text
from course_utils.core.say import decimal_bytes_text as short
from course_utils.core.say.language import in_a_row, template, translated
from course_utils.engine.labs.draw import marks

# The parts whose name beside the picture differs from the field's, which is in the table, or which
# only this lab names.
PARTS = {
    template("passing"): template("in passing"),
    "logits": template("logits and loss"),
    "master": template("master"),
    "gathered": template("gathered"),
}
ASKS = {
    HELD: template(
        "How full is the memory? Set a mark at each eighth of the step: "
        "100 is as full as it ever gets. Then press Show."
    ),
    FULLEST: template(
        "When is the memory fullest? Set the mark at that moment of the step, and press Show."
    ),
}
# By whether there are several machines, and whether the data sheet has a rate for the dtype.
TITLES = {
    (False, True): template(
        "{model}: a step of {tokens} tokens on one {machine}, {seconds} by its data sheet"
    ),
    (False, False): template(
        "{model}: a step of {tokens} tokens on one {machine}, "
        "{seconds} by its data sheet, at {rate}'s rate: it has none for {dtype}"
    ),
    (True, True): template(
        "{model}: a step of {tokens} tokens on each of {machines} × {machine}, "
        "{seconds} by its data sheet"
    ),
    (True, False): template(
        "{model}: a step of {tokens} tokens on each of {machines} × {machine}, "
        "{seconds} by its data sheet, at {rate}'s rate: it has none for {dtype}"
    ),
}
HEADS = (
    template("bytes on each machine"),
    template("at this moment"),
    template("at the fullest"),
)
RECOMPUTE = template("recompute")  # the phase that no axis names
FITS = template("Fits: at its fullest moment ({moment}) a GPU holds {held} of {memory}.")
DOES_NOT_FIT = template(
    "Does not fit: at its fullest moment ({moment}) a GPU holds {held} of {memory}."
)


def title(asked: Asked, step: Step) -> str:
    """Return the headline: model, tokens, machines, and a step's seconds by the data sheet.

    It begins like "Llama 3 8B: a step of 1 × 8,192 tokens on each of 8 × H100 SXM".
    """
    rate = rate_for(machine_named(asked.machine), asked.dtype)
    return translated(
        TITLES[asked.machines > 1, rate == asked.dtype],
        model=with_parameters(asked.model),
        tokens=f"{asked.batch:,} × {asked.tokens:,}",
        machines=f"{asked.machines:,}",
        machine=asked.machine,
        seconds=seconds_text(step.seconds),
        rate=rate,
        dtype=asked.dtype,
    )


def when(moment: Moment) -> str:
    """Return the operation of a moment in words, with its phase and layer."""
    phase = translated(moment.phase)  # the operation keeps its name, which is that of a tensor
    if moment.layer is None:
        return translated("{phase}, {operation}", phase=phase, operation=moment.where)
    return translated(
        "{phase}, {operation} of layer {layer}",
        phase=phase,
        operation=moment.where,
        layer=f"{moment.layer + 1}",  # readers count layers from 1
    )


def meaning(asked: Asked, step: Step, guesses: Sequence[Guess]) -> str:
    """Return the text below the picture.

    Before the reveal, the text asks for a guess. Afterwards it says whether the step fits, when the
    memory is fullest, and how far off the marks are.
    """
    if asked.hides:
        return translated(ASKS[asked.ask])
    memory = machine_named(asked.machine).bytes
    on_memory = translated(
        FITS if step.most <= memory else DOES_NOT_FIT,
        moment=when(step.fullest),
        held=held_text(step.most),
        memory=short(memory),
    )
    return in_a_row(on_memory, about_experts(asked.model), _on_marks(asked, guesses))


def _on_marks(asked: Asked, guesses: Sequence[Guess]) -> str:
    """Return a sentence on the reader's marks; an empty string if none is set.

    Of several marks, the one that is farthest off is named. The single mark of the fullest moment
    is named beside the right place.
    """
    if asked.ask != FULLEST:
        return marks.summed_up(guesses)
    if not guesses:
        return ""
    (guess,) = guesses
    return translated(
        "It is at {predicted} % of the step; your mark is at {guessed} %.",
        predicted=f"{guess.measured:.0f}",
        guessed=f"{guess.said}",
    )


def table(asked: Asked, step: Step, measured: Sequence[int] | None) -> list[list[str]]:
    """Return a table of the bytes of each part at the chosen and at the fullest moment.

    `measured` has the bytes at each operation of a real step, or is None if no step was measured.
    """
    now = step.at(asked.moment / MOMENTS).held
    most = step.fullest.held
    rows = [[translated(head) for head in HEADS]]
    for part, now_bytes, most_bytes in zip(Held._fields, now, most, strict=True):
        rows.append([translated(part), f"{now_bytes:,}", f"{most_bytes:,}"])
    rows.append([translated("total"), f"{now.total:,}", f"{most.total:,}"])
    # What an optimizer copies during its step is not predicted, see `predict.timeline`.
    left_out = translated("left out")
    rows.append([translated("copies in an optimizer's own step"), left_out, left_out])
    if measured:
        rows.append([translated("measured at its fullest"), "", f"{max(measured):,}"])
    return rows
