"""The optimizer lab's sentences: who diverges, who leads, and up to which lr one comes down."""

import math
from collections.abc import Sequence

from course_utils.chapters.optimizers.optimizer_lab.asked import (
    FALLING,
    LINEAR,
    LONG,
    NOBODY,
    RATES,
    SHORT,
    STEPS,
    Race,
)
from course_utils.core.say import Number, listed
from course_utils.core.say.language import in_a_row, template, translated
from course_utils.engine.labs.draw import marks

LOWEST = 1e-9  # the lowest loss that is drawn, and that is written as a number
LONG_PATHS = template("Steps {first} to {last} at lr = {lr}")
FALLING_PATHS = template("Steps {first} to {last} at an lr that began at {lr}")
# By what is judged.
AT_EVERY_LR = {
    SHORT: template(
        "After 100 steps, {optimizer} has come down at every lr, up to {largest}, "
        "where this axis ends."
    ),
    LONG: template(
        "After 10,000 steps, {optimizer} has come down at every lr, up to {largest}, "
        "where this axis ends."
    ),
    FALLING: template(
        "After 10,000 steps, lr falling to 0, {optimizer} has come down at every lr, "
        "up to {largest}, where this axis ends."
    ),
}
UP_TO_LR = {
    SHORT: template(
        "After 100 steps, {optimizer} ends lower than it began up to lr = {largest} or so."
    ),
    LONG: template(
        "After 10,000 steps, {optimizer} ends lower than it began up to lr = {largest} or so."
    ),
    FALLING: template(
        "After 10,000 steps, lr falling to 0, {optimizer} ends lower than it began "
        "up to lr = {largest} or so."
    ),
}
# In each: if only one optimizer races, else for one that is the lowest, and for several.
ENDING_LOWEST = (
    template("At lr = {lr}, {best}'s largest loss of the last {count} steps is {loss}."),
    template(
        "At lr = {lr}, {best} ends lowest: its largest loss of the last {count} steps is {loss}."
    ),
    template(
        "At lr = {lr}, {best} end lowest: their largest loss of the last {count} steps is {loss}."
    ),
)
LOWEST_AT_STEP = (
    template("At lr = {lr}, after {steps} steps, {best} has this loss: {loss}."),
    template("At lr = {lr}, after {steps} steps, {best} has the lowest loss: {loss}."),
    template("At lr = {lr}, after {steps} steps, {best} have the lowest loss: {loss}."),
)


def title_of_paths(race: Race) -> str:
    """Return the title of the paths: which steps are drawn, and the learning rate."""
    if race.run == SHORT:
        return translated("{count} steps at lr = {lr}", count=f"{race.step}", lr=f"{race.lr:g}")
    before = race.steps - STEPS  # of a long run, only the last STEPS are drawn
    return translated(
        FALLING_PATHS if race.is_falling else LONG_PATHS,
        first=f"{before:,}",
        last=f"{before + race.step:,}",
        lr=f"{race.lr:g}",
    )


def title_of_curves(race: Race) -> str:
    """Return the title of the curves.

    The curves show the largest of several losses, because a single one may be low by chance.
    """
    count = f"{race.last_steps:,}"
    if race.is_falling:  # above the plot is no room for "steps", too
        return translated("Largest loss of the last {count}, lr falling", count=count)
    return translated("Largest loss of the last {count} steps", count=count)


def limit_text(race: Race, name: str) -> str:
    """Return the limit of lr by the formula, as the table shows it.

    A dash stands where no formula is known: for a falling lr, and for AdamW's long run.
    """
    if race.is_falling or (race.run == LONG and name == "AdamW"):
        return "–"
    limit = race.limit(name)
    if limit == math.inf:
        return translated("none")
    return f"{limit:.3g}"


def meaning(race: Race) -> str:
    """Return the text below the picture: who diverges, and who leads.

    Once *Show* has answered a guess, the text begins instead with what was found for the guessed
    optimizer and how far off the guess was, and nobody is said to lead.
    """
    diverging = [why_it_diverges(race, name) for name in race.racing if name != race.hidden]
    makes_a_guess = race.guessed != NOBODY  # NOBODY: no optimizer is chosen in "guess for"
    if race.shown and makes_a_guess:
        how_far_off = marks.summed_up(race.guesses)  # empty if no mark was set
        sentences = [_on_the_limit(race, race.guessed), how_far_off, *diverging]
    else:
        sentences = [*diverging, _leading(race)]
    return in_a_row(*sentences)


def _on_the_limit(race: Race, name: str) -> str:
    """Return a sentence on the largest lr with which the optimizer comes down.

    The sentence has the predicted and the measured one, both written as `limit_text` writes them,
    so that equal numbers look equal. In the format `#.2g`, `#` keeps zeros at the end, as in 2.0.
    """
    subject = _subject(name)
    measured = race.measured_limit(name)
    if measured == RATES[-1]:  # `measured_limit` is at most this
        return translated(AT_EVERY_LR[race.run], optimizer=subject, largest=f"{measured:g}")
    if race.run == LONG and name == "RMSProp":
        # `predict.settled_loss` is a curvature × lr²/8, and the sentence keeps that form. So eight
        # times the loss at lr = 1 is the curvature.
        curvature = race.settled_loss(1.0) * 8
        return translated(
            "In the long run {optimizer}'s loss is {curvature} × lr²/8. "
            "It equals the {first_loss} at the start when lr = {predicted}; measured: {measured}.",
            optimizer=subject,
            curvature=f"{curvature:.4g}",
            first_loss=f"{race.first_loss:.3g}",
            predicted=f"{race.limit(name):.3g}",
            measured=f"{measured:.3g}",
        )
    if name not in LINEAR or race.is_falling:
        return translated(UP_TO_LR[race.run], optimizer=subject, largest=f"{measured:#.2g}")
    numerator = f"2(1 + {race.momentum:g})" if name == "momentum" else "2"
    formula = f"{numerator}/{race.steepness} = {race.limit(name):.3g}"
    return translated(
        "{optimizer} comes down up to lr = {formula}; measured: {measured}.",
        optimizer=subject,
        formula=formula,
        measured=f"{measured:.3g}",
    )


def _subject(name: str) -> str:
    """Return the name with a capital letter. str.capitalize would make "Sgd" of "SGD"."""
    return f"{name[0].upper()}{name[1:]}"


def why_it_diverges(race: Race, name: str) -> str:
    """Return why an optimizer diverges, in numbers; an empty string if it does not diverge."""
    # Exactly at the limit the error neither grows nor shrinks. The 1e-9 allows for rounding.
    if race.lr <= race.limit(name) * (1 + 1e-9):
        return ""
    if name not in LINEAR:
        # Its steps are about lr long on whatever slope, so it jumps from lr/2 before the lowest
        # point to lr/2 behind it.
        return translated(
            "{optimizer} ends higher than it began: it goes to and fro by lr/2 = {half}.",
            optimizer=name,
            half=f"{race.lr / 2:g}",
        )
    if race.is_falling and race.end_loss(name, race.lr) < math.inf:
        return ""  # the error grew at first, but shrank once lr was below the limit
    mu = race.momentum if name == "momentum" else 0.0
    product = race.lr * race.steepness
    most = 2 * (1 + mu)
    return translated(
        "{optimizer} diverges: lr × {steepness} = {product} > {most}, so its error grows.",
        optimizer=_subject(name),
        steepness=f"{race.steepness}",
        product=f"{product:.6g}",
        most=f"{most:g}",
    )


def _leading(race: Race) -> str:
    """Return a sentence on the optimizers that have the lowest loss.

    As long as the slider `step` is not at its end, it is the loss after that step, of the paths at
    the left. At the end it is the largest loss of the last steps, of the curves at the right.
    """
    if race.step == STEPS:
        return _ending_lowest(race)
    return _lowest_at_step(race)


def _ending_lowest(race: Race) -> str:
    """Return a sentence on the optimizers whose largest loss of the last steps is the lowest."""
    losses = {name: race.end_loss(name, race.lr) for name in race.racing}
    least = min(losses.values())
    if least == math.inf:
        return translated("Nobody is left.")
    best = [name for name, loss in losses.items() if loss == least]
    return translated(
        _one_of_three(ENDING_LOWEST, race, best),
        lr=f"{race.lr:g}",
        best=listed(best),
        count=f"{race.last_steps:,}",
        loss=loss_text(least),
    )


def _one_of_three(sentences: tuple[str, str, str], race: Race, best: Sequence[str]) -> str:
    """Return the first sentence if only one optimizer races, else the one on one or several."""
    if len(race.racing) == 1:
        return sentences[0]
    return sentences[1] if len(best) == 1 else sentences[2]


def _lowest_at_step(race: Race) -> str:
    """Return a sentence on the optimizers whose loss after the present step is the lowest."""
    losses = {}
    for name in race.racing:
        points = race.descent(name)
        was_lost = race.step >= len(points)  # a run ends early where the optimizer is lost
        if not was_lost:
            losses[name] = race.ground.loss(*points[race.step])
    if not losses:
        return translated("Nobody is left.")
    least = min(losses.values())
    best = [name for name, loss in losses.items() if loss == least]
    before = race.steps - STEPS  # steps before those that are drawn: 0 in a run of STEPS steps
    return translated(
        _one_of_three(LOWEST_AT_STEP, race, best),
        lr=f"{race.lr:g}",
        steps=f"{before + race.step:,}",
        best=listed(best),
        loss=loss_text(least),
    )


def loss_text(loss: Number) -> str:
    """Return the loss in two digits; for one below the picture's edge, that it is smaller."""
    if loss >= LOWEST:
        return f"{loss:.2g}"
    return f"< {LOWEST:.0e}"
