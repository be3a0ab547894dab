"""Contact sheets: every slide of a deck on a few pictures, to look at.

`python -m tests.tools.slide_sheets FOLDER` takes them of all decks in `slides/`, at both sizes, into that folder;
names of notebooks after it choose some.
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
COLUMNS, ROWS, TILE = 3, 4, (640, 360)


@contextmanager
def blank_page(browser: Browser) -> Iterator[Page]:
    """A page that reaches nothing but files."""
    with browser.new_context(offline=True) as context:
        yield context.new_page()


def open_deck(page: Page, deck: Path, size: tuple[int, int] = SIZES[0]) -> int:
    """Open the deck at that size; how many slides it has."""
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(deck.as_uri())
    page.wait_for_selector("html[data-slides]", state="attached")
    return int(page.locator("html").get_attribute("data-slides"))


def shots(page: Page, count: int) -> Iterator[Image.Image]:
    """The slides one after the other, as a presenter turns them."""
    for _ in range(count):
        yield Image.open(BytesIO(page.screenshot()))
        page.keyboard.press("ArrowRight")


def sheets(images: list[Image.Image]) -> Iterator[Image.Image]:
    """The images on as few sheets as hold them."""
    width, height = (side + 8 for side in TILE)
    for begin in range(0, len(images), COLUMNS * ROWS):
        sheet = Image.new("RGB", (COLUMNS * width, ROWS * height), "#888888")
        for place, image in enumerate(images[begin : begin + COLUMNS * ROWS]):
            row, column = divmod(place, COLUMNS)
            sheet.paste(
                image.resize(TILE, Image.Resampling.LANCZOS), (column * width, row * height)
            )
        yield sheet


def main(folder: str, *names: str) -> None:
    """Photograph the decks."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with chromium() as browser, blank_page(browser) as page:
        decks = [
            deck
            for path in copies.chosen(names)
            for deck in sorted(FOLDER.glob(f"{path.stem}*.html"))
        ]
        for deck in decks:
            for size in SIZES:
                images = list(shots(page, open_deck(page, deck, size)))
                for number, sheet in enumerate(sheets(images), 1):
                    sheet.save(target / f"{deck.stem}_{size[1]}_{number}.png")
            print(f"{deck.stem}: {len(images)} slides")


if __name__ == "__main__":
    main(*sys.argv[1:])
