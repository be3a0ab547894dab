"""What the crash lab draws: a table, the losses beside those of a run never killed, and a bar for each process."""

from collections.abc import Iterator

from course_utils.labs.crash.asked import CRASHES, MOST_STEPS, Plan, Story
from course_utils.labs.crash.words import meaning, next_process, rows
from course_utils.labs.draw.lettering import columns, fitted, key
from course_utils.labs.draw.plot import Axis, Plot
from course_utils.labs.draw.svg import cross, dot, picture, rect, text
from course_utils.labs.lab import View
from course_utils.quantities import Number, listed

WIDTH, HEIGHT = 1000, 452
LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT = 206, 118, 782, 190
BOTTOM = TOP + PLOT_HEIGHT
ROWS, ROW_TOP, ROW, BAR = 5, BOTTOM + 29, 19, 13
FOLDER = HEIGHT - 6
LOSSES = [n * 10.0**power for power in range(-6, 6) for n in (1, 1.5, 2, 3, 5, 7)]
KEY = {"predicted": "wide: never killed", "measured": "narrow: this run", "lost": "lost, done again"}


def view(plan: Plan, story: Story) -> View:
    """The table, the curves, the processes and the folder."""
    plot = _plot(story)
    drawn = [
        columns(list(rows(plan, story)), 0, 16, WIDTH, ("", "formula", "measured-words"), step=20),
        fitted(0, 99, next_process(plan), WIDTH),
        *_key(),
        *_curves(plot, story),
        *_processes(plot, story),
        *_folder(story),
    ]
    return View(picture(WIDTH, HEIGHT, *drawn), meaning(plan, story))


def _plot(story: Story) -> Plot:
    losses = [*story.reference, *(loss for life in story.lives for loss in life.losses)]
    axes = Axis(0, MOST_STEPS, linear=True), Axis(min(losses) / 1.1, max(losses) * 1.1, marks=LOSSES)
    return Plot(LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT, *axes)


def _key() -> Iterator[str]:
    yield text(0, TOP + 12, "Loss at each step", class_="strong")
    for number, item in enumerate(KEY.items()):
        yield key([item], 0, TOP + 38 + 20 * number)
    yield text(0, TOP + 98, "dot: saved, X: killed or ended", class_="faint small")


# The curves.


def _curves(plot: Plot, story: Story) -> Iterator[str]:
    """Each process's losses begin at its checkpoint. Lost ones are pale; a dot is a save, an X a crash."""
    yield plot.frame()
    yield plot.line(enumerate(story.reference, 1), "line predicted under")
    known: dict[int, Number] = {}
    for n, life in enumerate(story.lives):
        losses, kept = {step: known[step] for step in {life.first} & set(known)} | life.by_step, story.kept(n)
        yield plot.line([point for point in losses.items() if point[0] >= kept], "line lost")
        yield plot.line([point for point in losses.items() if point[0] <= kept], "line measured")
        known |= life.by_step
    for life in story.lives:
        for step in sorted(set(life.saved) & set(life.by_step)):
            yield dot(*plot.at(step, life.by_step[step]), 3.5, class_="measured")
        if life.end in CRASHES and life.losses:
            yield cross(*plot.at(life.last, life.losses[-1]), 7, class_="crash")


# The processes and the folder.


def _processes(plot: Plot, story: Story) -> Iterator[str]:
    """A bar for each of the latest processes: the steps that it made, and which of them were lost."""
    yield text(0, BOTTOM + 18, "Its processes", class_="strong")
    for n, life in list(enumerate(story.lives))[-ROWS:]:
        y = ROW_TOP + ROW * (n - max(0, len(story.lives) - ROWS))
        yield text(0, y + BAR - 2, f"{n + 1} · {life.end} at {life.last}", class_="small")
        begin, kept, end = (plot.x(max(life.first, step)) for step in (life.first, story.kept(n), life.last))
        yield rect(begin, y, kept - begin, BAR, class_="measured")
        yield rect(kept, y, end - kept, BAR, class_="lost")


def _folder(story: Story) -> Iterator[str]:
    """What is whole in it, and what is not."""
    whole = f"step {listed(story.whole)}, whole" if story.whole else "nothing yet"
    yield text(0, FOLDER, "In the folder", class_="strong")
    yield text(LEFT, FOLDER, whole, class_="measured-words" if story.whole else "faint")
    if story.unfinished is not None:
        yield text(WIDTH, FOLDER, f"step {story.unfinished}, not whole: never loaded", class_="strong end")
