"""A walk through a notebook with Shift+Enter, the key that everybody presses.

After each key it looks at what is in the window, in JupyterLab and in a presentation.
"""

from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page

from course_utils.stage.notebook.code import figure_in, is_guess
from course_utils.stage.notebook.files import Cell, read, source
from course_utils.stage.notebook.outline import outline
from course_utils.stage.workspace.copies import as_handed_out

LAPTOP = {"width": 1366, "height": 768}
HERE = ".jp-NotebookPanel:not(.lm-mod-hidden)"  # the notebook in front
# Notes each cell as soon as it is painted in the window. A moment is enough to read an answer.
WATCH = """() => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  const cells = notebook.widgets;
  const root = notebook.node.querySelector(".jp-WindowedPanel-outer");
  const numbers = new Map(cells.map(({ node }, at) => [node, at]));
  window.courseSeen = new Set();
  const note = (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) window.courseSeen.add(numbers.get(target));
    }
  };
  const watching = new IntersectionObserver(note, { root, rootMargin: "-2px" });
  for (const { node } of cells) watching.observe(node);
  notebook.activeCellIndex = 0;
  notebook.activate();
}"""
# Forgets what was seen so far. What was painted before may be noted a frame later.
FORGET = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  for (let frames = 0; frames < 3; frames += 1) await frame();
  window.courseSeen.clear();
}"""
# What a lab, the field of a guess and a figure have in the page once they are drawn.
LAB_OR_GUESS = ".course-lab[aria-label] .course-picture svg, .course-ask-card"
FIGURE = ".jp-RenderedImage img"
# When the kernel and the page have done what they had to do for that cell: what lies where. `drawn`
# is one of the above if the cell shows that, or empty.
LOOK = """async ([at, drawn]) => {
  const frame = () => new Promise(requestAnimationFrame);
  const boxOf = (part) => part.getBoundingClientRect();
  const { content: notebook, sessionContext } = window.jupyterapp.shell.currentWidget;
  const { node } = notebook.widgets[at];
  await sessionContext.session.kernel.requestKernelInfo();

  // Until that is drawn, and nothing moves any more.
  const isDrawn = () => {
    const found = node.querySelector(drawn);
    return found && found.complete !== false; // as an image is not until it is loaded
  };
  const end = performance.now() + 60_000;
  while (drawn && !isDrawn() && performance.now() < end) await frame();
  const place = () => {
    const kinds = ".course-lab, .course-picture, .jp-RenderedImage img";
    const parts = [node, ...node.querySelectorAll(kinds)];
    return JSON.stringify(parts.map(boxOf));
  };
  let last = "";
  let same = 0;
  while (same < (drawn ? 6 : 2)) {
    same = place() === last ? same + 1 : 0;
    await frame();
    last = place();
  }

  const seen = boxOf(notebook.node.querySelector(".jp-WindowedPanel-outer"));
  const outside = (part) => Math.max(seen.top - boxOf(part).top, boxOf(part).bottom - seen.bottom);
  const kinds = "button, input, .noUi-handle, .course-meaning, .course-picture";
  const inLab = [...node.querySelectorAll(`:is(.course-lab, .course-ask) :is(${kinds})`)];
  const figures = node.querySelectorAll(".jp-RenderedImage img");
  const parts = [...inLab, ...figures].filter((part) => part.checkVisibility());
  const lab = node.querySelector(".course-lab");
  const onScreen = [...node.querySelectorAll(".course-screen > *")];
  const bottom = Math.max(...onScreen.map((part) => boxOf(part).bottom));
  return {
    active: notebook.activeCellIndex,
    seen: [...window.courseSeen].sort((a, b) => a - b),
    outside: Math.max(0, ...parts.map(outside)),
    parts: parts.length,
    height: lab ? bottom - boxOf(lab).top : 0,
  };
}"""
ACTIVE = "() => window.jupyterapp.shell.currentWidget.content.activeCellIndex"
# How much of a reveal, or of the card of a field, is outside the window.
OUTSIDE = """(at) => {
  const { content: notebook } = window.jupyterapp.shell.currentWidget;
  const { node } = notebook.widgets[at];
  const part = node.querySelector(".course-ask-card, .jp-OutputArea-output.jp-RenderedHTML");
  const seen = notebook.node.querySelector(".jp-WindowedPanel-outer").getBoundingClientRect();
  const { top, bottom } = (part ?? node).getBoundingClientRect();
  return Math.max(0, seen.top - top, bottom - seen.bottom);
}"""
HAS_FAILED = """(at) => {
  const { outputs } = window.jupyterapp.shell.currentWidget.content.widgets[at].model;
  return outputs ? outputs.toJSON().some(({ output_type: kind }) => kind === "error") : false;
}"""
REPLAY = """async (path) => {
  const code = `from tests.helpers import replay; replay.begin(${JSON.stringify(path)})`;
  const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
  const { content } = await kernel.requestExecute({ code, silent: true }).done;
  if (content.status !== "ok") throw new Error(content.evalue);
}"""


def makes_lab(cell: Cell) -> bool:
    """Whether the cell shows a lab here. One that records a GPU and finds none shows words."""
    if cell["cell_type"] != "code" or "new_recording." in source(cell):
        return False
    return figure_in(source(cell)) is not None


def has_figure(cell: Cell) -> bool:
    """Whether a picture is stored with the cell; that of a lab is none, because labs are alive."""
    outputs = cell.get("outputs", ())
    return any("image/png" in output.get("data", {}) for output in outputs)


def drawn_by(cell: Cell) -> str:
    """Return what shows that the cell's lab, field or figure is drawn; empty if it has none."""
    if makes_lab(cell) or is_guess(source(cell)):
        return LAB_OR_GUESS
    return FIGURE if has_figure(cell) else ""


def press(page: Page, at: int, cell: Cell) -> dict[str, object]:
    """Press the key for that cell, and look.

    Returns how much of its lab is outside, and which cells below it were seen since the key.
    """
    page.evaluate(FORGET)
    page.keyboard.press("Shift+Enter")
    found = page.evaluate(LOOK, [at, drawn_by(cell)])
    return found | {"below": [number for number in found["seen"] if number > at]}


def walk(page: Page, path: Path) -> list[str]:
    """Press the key for each cell of that notebook, and Show where it has that button.

    The page has a student's copy of it. Returns what was wrong.
    """
    wrong = []
    has_run = 0  # the cells before this one have run
    page.evaluate(WATCH)
    cells = read(path)["cells"]
    parts = outline(as_handed_out(read(path))).parts
    for at, cell in enumerate(cells):
        if at < has_run:
            continue
        asks = parts[at].waits_for_a_guess
        if not (asks or drawn_by(cell)):
            page.keyboard.press("Shift+Enter")
            continue
        page.evaluate(LOOK, [max(0, at - 1), ""])  # until all before it has run
        found = press(page, at, cell)
        words = f"{at}: {source(cell)[:50]}"
        if not found["parts"] or found["outside"] > 1:
            wrong.append(f"{words}: {found['outside']:.0f} px of {found['height']:.0f} are outside")
        if asks and found["below"]:
            wrong.append(f"{words}: in the window were cells {found['below']}")
        if asks:
            wrong += [f"{words}: {fault}" for fault in show(page, at, cell)]
        if is_guess(source(cell)):
            has_run = page.evaluate(ACTIVE)  # Show has run the reveal
    return wrong


def show(page: Page, at: int, cell: Cell) -> Iterator[str]:
    """The answer is not seen when the next cell runs, but after Show; then the key goes on.

    After the Show of a field, its reveal is in the window, or the next cell is chosen. Yields what
    was wrong with that.
    """
    found = press(page, at, cell)
    if found["below"]:
        yield f"after one more key, in the window were cells {found['below']}"
    if found["outside"] > 1:
        yield f"after one more key, {found['outside']:.0f} px are outside"
    waiting = page.locator(f"{HERE} .course-waits")
    waiting.get_by_role("button", name="Show", exact=True).click()
    waiting.wait_for(state="detached")
    shown = page.evaluate(LOOK, [at, LAB_OR_GUESS if makes_lab(cell) else ""])
    # Of a field, the reveal has to be in the window, or else its card: see below.
    if shown["outside"] > 1 and not is_guess(source(cell)):
        yield f"when it is shown, {shown['outside']:.0f} px of {shown['height']:.0f} are outside"
    if is_guess(source(cell)):
        chosen = page.evaluate(ACTIVE)
        if chosen > at + 1:
            page.evaluate(LOOK, [chosen - 1, "table"])
        # A replay may lack what the reveal needs. Then that is chosen, and its message is seen.
        has_failed = page.evaluate(HAS_FAILED, chosen)
        hidden = page.evaluate(OUTSIDE, chosen if has_failed else chosen - 1)
        if chosen <= at or hidden > 1 or waiting.count():
            yield f"after Show, cell {chosen} is chosen, and {hidden:.0f} px of its reveal outside"
        return
    found = press(page, at, cell)
    if found["active"] != at + 1 or waiting.count():
        yield f"after Show, cell {found['active']} is chosen, and {waiting.count()} wait"
