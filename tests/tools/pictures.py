"""The pictures of the README and of the pages, drawn from the labs as they are: called by `make pictures`.

Each keeps what it was drawn from as a digest, so a test can say when it is stale.
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

FOLDER = ROOT / "notebooks" / "pictures"
DRAWN_FROM = "Drawn from"  # the digest's name in the file
WIDTH_PX, MARGIN_PX = 1400, 24


@dataclass(frozen=True)
class Picture:
    """A lab's picture, once these answers are given."""

    lab: str
    answers: dict[str, object] = field(default_factory=dict)
    preset: str = ""

    def session(self) -> Session:
        """The lab in that state."""
        session = Session(labs.lab_named(self.lab))
        if self.preset:
            session.preset(self.preset)
        session.set(self.answers)
        return session

    def digest(self) -> str:
        """What changes when the picture would: its drawing, with the style sheet that colours it."""
        drawing = self.session().shown["svg"] + still.STILL_CSS
        return base64.urlsafe_b64encode(hashlib.sha256(drawing.encode()).digest()).decode()

    def png(self) -> bytes:
        """The picture, with its words and its digest inside."""
        shown = self.session().shown
        words = f"{self.lab.capitalize()} lab. {shown['meaning']}"
        drawn = Image.open(BytesIO(still.still_png(shown["svg"], words, width_px=WIDTH_PX)))
        image = ImageOps.expand(drawn.convert("RGB"), MARGIN_PX, "white").quantize(96)
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
    """Whether the picture would be drawn otherwise now."""
    with Image.open(folder / name) as image:
        return image.text.get(DRAWN_FROM) != PICTURES[name].digest()


def draw(folder: Path = FOLDER) -> None:
    """Draw those that are stale, or not there."""
    for name, picture in PICTURES.items():
        if not (folder / name).is_file() or is_stale(name, folder):
            (folder / name).write_bytes(picture.png())
            print(f"{name} is drawn anew.")


if __name__ == "__main__":
    draw()
