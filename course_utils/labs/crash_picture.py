"""What the crash lab draws: an account, the losses beside those of a run never killed, and a bar for each process."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from course_utils.labs import crash_words as words
from course_utils.labs.crash_story import CRASHES, Life, Story
from course_utils.labs.panel import View
from course_utils.labs.svg import StepPlot, dot, picture, polyline, rect, text
from course_utils.quantities import Number

WIDTH, HEIGHT = 940, 596
COLUMNS = (0, 262, 700)
LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT = 210, 158, 710, 226
ROWS, ROW_TOP, ROW, BAR = 5, TOP + PLOT_HEIGHT + 46, 24, 14
FOLDER_TOP = ROW_TOP + ROWS * ROW + 18
CROWDED = 9  # marks nearer to each other than this are small
MOST_TIMES = 1e3  # as large as the smallest: the axis reaches no further
Point = tuple[Number, Number]


class LossPlot(StepPlot):
    """Losses, which are few powers of ten apart, over steps."""

    def axes(self) -> str:
        """Grid lines, and their numbers."""
        bottom, right = self.top + self.height, self.left + self.width
        parts = []
        for step in self._x_ticks():
            parts.append(polyline([(self.x(step), self.top), (self.x(step), bottom)], class_="grid"))
            parts.append(text(self.x(step), bottom + 18, f"{step}", class_="middle small"))
        low, high = self.y_range
        for loss in (n * 10.0**power for power in range(-6, 6) for n in (1, 1.5, 2, 3, 5, 7)):
            if low <= loss <= high:
                parts.append(polyline([self.at(0, loss), (right, self.y(loss))], class_="grid"))
                parts.append(text(self.left - 8, self.y(loss) + 4, f"{loss:g}", class_="end small"))
        return "".join(parts)


def view(
    story: Story, reference: Sequence[Number], steps: int, every: int, without: Sequence[str] = ()
) -> View:
    """The account, the curves, the processes and the folder; the last three are what the controls say now."""
    plot = _plot(story, reference, max(steps, story.steps, *(life.last for life in story.lives)))
    drawn = [
        *_account(story, reference, every),
        *_curves(plot, story, reference),
        *_processes(plot, story),
        *_folder(story),
    ]
    return View(picture(WIDTH, HEIGHT, *drawn), words.meaning(story, reference, without))


def _plot(story: Story, reference: Sequence[Number], steps: int) -> LossPlot:
    losses = [*reference[:steps], *(loss for life in story.lives for loss in life.losses)]
    seen = [loss for loss in losses if loss > 0 and math.isfinite(loss)] or [1.0]
    reach = (min(seen) / 1.1, min(max(seen) * 1.1, min(seen) * MOST_TIMES))
    return LossPlot(LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT, (0, steps), reach)


def _account(story: Story, reference: Sequence[Number], every: int) -> Iterator[str]:
    for number, cells in enumerate(words.account(story, reference, every)):
        classes = ("", "formula", "measured-words") if number else ("faint",) * 3
        for x, cell, class_ in zip(COLUMNS, cells, classes, strict=True):
            if cell:
                yield text(x, 16 + 22 * number, cell, class_=class_)


# The curves.


def _curves(plot: LossPlot, story: Story, reference: Sequence[Number]) -> Iterator[str]:
    last = plot.x_range[1]
    yield text(0, TOP - 18, "Loss, each step", class_="strong")
    yield text(LEFT, TOP - 18, "wide: a run never killed", class_="formula")
    yield text(LEFT + 214, TOP - 18, "narrow: this run", class_="measured-words")
    yield text(
        LEFT + 366, TOP - 18, "dots: saved, X: killed, dashed: back to what was saved", class_="small faint"
    )
    yield plot.axes()
    places = [plot.at(step, loss) for step, loss in enumerate(reference[:last], 1)]
    yield polyline(places, class_="line predicted under")
    known: dict[int, Number] = {}
    for n, life in enumerate(story.lives):
        yield from _curve(plot, life, story.kept(n), known.get(life.first))
        known |= life.by_step
    if len(story.lives) > 1:
        yield from _way_back(plot, story)
    for life in story.lives:
        yield from _marks(plot, life)


def _curve(plot: LossPlot, life: Life, kept: int, begin: Number | None) -> Iterator[str]:
    """A life's losses, from that of its checkpoint on; those that were lost with it are pale."""
    losses = life.by_step if begin is None else {life.first: begin} | life.by_step
    for class_, steps in (
        ("lost", [step for step in losses if step >= kept]),
        ("measured", [step for step in losses if step <= kept]),
    ):
        if len(steps) > 1:
            yield polyline([plot.at(step, losses[step]) for step in steps], class_=f"line {class_}")


def _way_back(plot: LossPlot, story: Story) -> Iterator[str]:
    """From where the latest crash was to the checkpoint that the run went on from."""
    before, now = story.lives[-2:]
    known = {step: loss for life in story.lives[:-1] for step, loss in life.by_step.items()}
    if before.last in known and now.first in known and now.first < before.last:
        over = plot.top + 10
        end, begin = (plot.at(step, known[step]) for step in (before.last, now.first))
        yield polyline([end, (end[0], over), (begin[0], over), begin], class_="back")


def _marks(plot: LossPlot, life: Life) -> Iterator[str]:
    """A dot at each checkpoint, and an X where a crash was."""
    losses = life.by_step
    gap = min((b - a for a, b in pairwise(life.saved)), default=plot.x_range[1])
    radius = 4.5 if gap * plot.width / plot.x_range[1] >= CROWDED else 2.5
    for step in sorted(set(life.saved) & set(losses)):
        yield dot(*plot.at(step, losses[step]), radius, class_="measured")
    if life.end in CRASHES and life.losses:
        yield _cross(*plot.at(life.last, life.losses[-1]), 7)


def _cross(x: Number, y: Number, arm: Number) -> str:
    return "".join(polyline([(x - arm, y - d), (x + arm, y + d)], class_="crash") for d in (arm, -arm))


# The processes and the folder.


def _processes(plot: LossPlot, story: Story) -> Iterator[str]:
    """A bar for each of the latest processes: the steps that it made, its checkpoints, where it ended."""
    top = plot.top + plot.height
    yield text(plot.left + plot.width, top + 36, "steps", class_="faint end small")
    hidden = max(0, len(story.lives) - ROWS)
    title = f"Its processes, the latest {ROWS} of {len(story.lives)}" if hidden else "Its processes"
    yield text(0, top + 36, title, class_="strong")
    for number, life in enumerate(story.lives[hidden:]):
        n, y = hidden + number, ROW_TOP + ROW * number
        yield text(0, y + BAR - 2, words.row(n + 1, life), class_="small")
        yield from _bar(plot, life, story.kept(n), y)
        if n + 1 < len(story.lives):
            begin, end = plot.x(story.lives[n + 1].first), plot.x(life.last)
            way = [(end, y + BAR), (end, y + ROW - 5), (begin, y + ROW - 5), (begin, y + ROW)]
            yield polyline(way, class_="back")


def _bar(plot: LossPlot, life: Life, last_kept: int, y: Number) -> Iterator[str]:
    begin, end = plot.x(life.first), plot.x(life.last)
    kept = max(begin, plot.x(last_kept))
    if kept > begin:
        yield rect(begin, y, kept - begin, BAR, class_="measured")
    if end > kept:
        yield rect(kept, y, end - kept, BAR, class_="lost")
    for step in life.saved:
        yield polyline([(plot.x(step), y), (plot.x(step), y + BAR)], class_="saved")
    if life.end in CRASHES:
        yield _cross(end, y + BAR / 2, 5)


def _folder(story: Story) -> Iterator[str]:
    whole, torn = words.folder(story)
    yield text(0, FOLDER_TOP, "In the folder", class_="strong")
    yield text(LEFT, FOLDER_TOP, whole, class_="measured-words" if story.whole else "faint")
    if torn:
        yield text(LEFT, FOLDER_TOP + 20, torn, class_="strong")
