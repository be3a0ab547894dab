"""Contact sheets: every slide of a deck on a few pictures, to look at.

`python -m tests.tools.slide_sheets FOLDER` writes sheets of all decks in `slides/`, at both sizes,
into that folder. Names of notebooks behind it choose some of the decks.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page

from course_utils.stage.slides.__main__ import FOLDER
from course_utils.stage.workspace import copies
from tests.helpers.browser import chromium

SIZES = [(1280, 720), (1920, 1080)]
COLUMNS = 3
ROWS = 4
TILE = (640, 360)


@contextmanager
def blank_page(browser: Browser) -> Iterator[Page]:
    """A page without a network, so that it can load files only."""
    with browser.new_context(offline=True) as context:
        yield context.new_page()


def open_deck(page: Page, deck: Path, size: tuple[int, int] = SIZES[0]) -> int:
    """Open the deck at that size, and return how many slides it has."""
    width, height = size
    page.set_viewport_size({"width": width, "height": height})
    page.goto(deck.as_uri())
    page.wait_for_selector("html[data-slides]", state="attached")
    return int(page.locator("html").get_attribute("data-slides"))


def shots(page: Page, count: int) -> Iterator[Image.Image]:
    """Yield the slides one after the other, as a presenter turns them."""
    for _ in range(count):
        yield Image.open(BytesIO(page.screenshot()))
        page.keyboard.press("ArrowRight")


def sheets(images: list[Image.Image]) -> Iterator[Image.Image]:
    """Yield the images on as few sheets as hold them."""
    width = TILE[0] + 8
    height = TILE[1] + 8
    for begin in range(0, len(images), COLUMNS * ROWS):
        sheet = Image.new("RGB", (COLUMNS * width, ROWS * height), "#888888")
        for number, image in enumerate(images[begin : begin + COLUMNS * ROWS]):
            row, column = divmod(number, COLUMNS)
            tile = image.resize(TILE, Image.Resampling.LANCZOS)
            sheet.paste(tile, (column * width, row * height))
        yield sheet


def main(folder: str, *names: str) -> None:
    """Write the sheets of the decks."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with chromium() as browser, blank_page(browser) as page:
        for path in copies.chosen(names):
            for deck in sorted(FOLDER.glob(f"{path.stem}*.html")):
                count = write_sheets(page, deck, target)
                print(f"{deck.stem}: {count} slides")


def write_sheets(page: Page, deck: Path, target: Path) -> int:
    """Write the sheets of one deck at both sizes, and return how many slides it has."""
    for size in SIZES:
        count = open_deck(page, deck, size)
        images = list(shots(page, count))
        for number, sheet in enumerate(sheets(images), 1):
            sheet.save(target / f"{deck.stem}_{size[1]}_{number}.png")
    return count


if __name__ == "__main__":
    main(*sys.argv[1:])
