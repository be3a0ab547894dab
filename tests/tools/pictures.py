"""Draws the pictures of the README from the labs, and those of the cards: `make pictures`.

Each file holds a digest of what it was drawn from, by which a test notices that it is stale.
"""

import base64
import hashlib
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageOps, PngImagePlugin

from course_utils.chapters import labs
from course_utils.engine.labs.draw import still
from course_utils.engine.labs.session import Session
from tests import ROOT
from tests.tools import light_pictures

FOLDER = ROOT / "notebooks" / "pictures"
DRAWN_FROM = "Drawn from"  # the digest's name in the file
WIDTH_PX = 1400
MARGIN_PX = 24


@dataclass(frozen=True)
class Picture:
    """A lab's picture after these answers."""

    lab: str
    answers: dict[str, object] = field(default_factory=dict)
    preset: str = ""

    def session(self) -> Session:
        """Return the lab in that state."""
        session = Session(labs.lab_named(self.lab))
        if self.preset:
            session.preset(self.preset)
        session.set(self.answers)
        return session

    def digest(self) -> str:
        """Return a digest of all that the picture depends on: its drawing and the style sheet."""
        drawing = self.session().shown["svg"] + still.STILL_CSS
        digest = hashlib.sha256(drawing.encode()).digest()
        return base64.urlsafe_b64encode(digest).decode()

    def png(self) -> bytes:
        """Return the picture as a PNG that also holds its description and its digest."""
        shown = self.session().shown
        words = f"{self.lab.capitalize()} lab. {shown['meaning']}"
        drawn = still.still_png(shown["svg"], words, width_px=WIDTH_PX)
        image = Image.open(BytesIO(drawn)).convert("RGB")
        image = ImageOps.expand(image, MARGIN_PX, "white").quantize(96)
        inside = PngImagePlugin.PngInfo()
        inside.add_itxt("Description", words)
        inside.add_text(DRAWN_FROM, self.digest())
        written = BytesIO()
        image.save(written, "PNG", optimize=True, pnginfo=inside)
        return written.getvalue()


PICTURES = {
    "timeline.png": Picture(
        "timeline", {"model": "GPT-2 small", "recipe": "fp32 sgd", "fused": False, "moment": 36}
    ),
    "float_lab.png": Picture("float", preset="1e-8?"),
}


def is_stale(name: str, folder: Path = FOLDER) -> bool:
    """Whether the lab would now draw another picture."""
    with Image.open(folder / name) as image:
        return image.text.get(DRAWN_FROM) != PICTURES[name].digest()


def draw(folder: Path = FOLDER) -> None:
    """Draw the pictures that are stale or missing."""
    for name, picture in PICTURES.items():
        if not (folder / name).is_file() or is_stale(name, folder):
            (folder / name).write_bytes(picture.png())
            print(f"{name} is drawn anew.")


if __name__ == "__main__":
    draw()
    light_pictures.draw()
