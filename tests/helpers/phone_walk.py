"""A walk with a finger through a page of the course, from guess to guess and from lab to lab."""

from collections.abc import Iterator

from playwright.sync_api import Locator, Page

PHONE = {"width": 390, "height": 844}
LEAST_PX = 24  # of what a finger touches, as WCAG 2.2 has it
# What is wider than the window, unless it can be moved sideways in its place.
WIDER = """() => {
  const moves = (node) => getComputedStyle(node).overflowX !== "visible";
  const isWider = (node) => {
    const { left, right, width } = node.getBoundingClientRect();
    return width > 0 && (left < -1 || right > innerWidth + 1);
  };
  const isFree = (node) => {
    for (let around = node.parentElement; around; around = around.parentElement) {
      if (around !== document.body && moves(around)) return false;
    }
    return true;
  };
  const nodes = [...document.querySelectorAll("main *")].filter((node) => node.checkVisibility());
  const found = nodes.filter((node) => isWider(node) && isFree(node));
  return found.map((node) => node.outerHTML.slice(0, 80));
}"""
# Brings a guess or a lab to the top of the window. How far down its controls reach, which of them
# are too small for a finger, and whether something of what Show or "Go on" unfolds is seen.
LOOK = """(part) => {
  part.scrollIntoView({ block: "start", behavior: "instant" });
  const kinds = "button, select, input:not([type=radio], [type=checkbox]), label:has(input)";
  const controls = [...part.querySelectorAll(kinds)].filter((one) => one.checkVisibility());
  const boxes = controls.map((one) => one.getBoundingClientRect());
  const isSmall = ({ width, height }) => Math.min(width, height) < LEAST_PX;
  const small = controls.filter((_, at) => isSmall(boxes[at]));
  let fold = part.nextElementSibling;
  while (fold && !fold.matches(".fold, [data-ask], .course-lab")) fold = fold.nextElementSibling;
  const isFolded = fold?.matches(".fold") ?? false;
  const behind = isFolded ? [...fold.children].slice(1) : [];
  return {
    bottom: Math.max(0, ...boxes.map(({ bottom }) => bottom)),
    controls: controls.length,
    small: small.map((one) => `${one.tagName} ${one.textContent}`),
    isGivenAway: behind.some((one) => one.checkVisibility()),
  };
}""".replace("LEAST_PX", str(LEAST_PX))


def walk(page: Page) -> list[str]:
    """Answer each guess of the page, press Show in each lab that has it, and unfold what follows.

    Returns what was wrong.
    """
    wrong = [f"at first, {words} is too wide" for words in page.evaluate(WIDER)]
    parts = page.locator("main :is([data-ask], .course-lab)").all()
    for number, part in enumerate(parts):
        words = part.get_attribute("data-lab") or part.get_attribute("data-ask")[:40]
        if not part.is_visible():
            wrong.append(f"{number}, {words}: what was before it has not unfolded it")
            continue
        faults = [*_faults(part), *(_guessed(part) if _asks(part) else _shown(part))]
        faults += [f"{one} is too wide" for one in page.evaluate(WIDER)]
        wrong += [f"{number}, {words}: {fault}" for fault in faults]
    return wrong


def _asks(part: Locator) -> bool:
    return part.get_attribute("data-ask") is not None


def _faults(part: Locator) -> Iterator[str]:
    """Yield what is wrong where the part has come to the top of the window."""
    found = part.evaluate(LOOK)
    if not found["controls"]:
        yield "it has no control"
    if found["bottom"] > PHONE["height"]:
        yield f"its controls end at {found['bottom']:.0f} px"
    if found["small"]:
        yield f"too small for a finger: {found['small']}"
    if found["isGivenAway"]:
        yield "what follows is seen before Show"


def _guessed(ask: Locator) -> Iterator[str]:
    """Answer the guess and press Show; yield what was wrong with that."""
    if ask.get_by_role("radio").count():
        ask.locator(".course-ask-option").last.tap()
        if not ask.get_by_role("radio").last.is_checked():
            yield "a finger cannot choose the last option"
    for field in ask.locator("input[type=text]").all():
        field.tap()
        if not field.evaluate("(field) => field === document.activeElement"):
            yield "a finger does not come into the field"
        field.fill("1")
        field.blur()
    show = ask.get_by_role("button", name="Show", exact=True)
    show.tap()
    if show.is_visible():
        yield "after Show, the button is still there"


def _shown(lab: Locator) -> Iterator[str]:
    """If the lab asks for a guess, set a mark, press Show, and unfold what follows."""
    show = lab.get_by_role("button", name="Show", exact=True)
    marks = lab.locator("[data-mark]")
    if show.count() and show.is_visible() and marks.count():
        handle = marks.first.locator(".mark").first
        handle.scroll_into_view_if_needed()
        box = handle.bounding_box()
        x = box["x"] + box["width"] / 2
        y = box["y"] + box["height"] / 2
        lab.page.touchscreen.tap(x, y)
        if marks.first.get_attribute("class").split().count("set") == 0:
            yield "a finger does not set its first mark"
        show.tap()
    go_on = lab.page.locator(".fold > summary:visible")
    if go_on.count():
        go_on.first.tap()
