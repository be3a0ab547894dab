"""Pictures that are small enough to be kept in a notebook, and say in words what they show."""

import io
from collections.abc import Mapping

from PIL import Image
from PIL.PngImagePlugin import PngInfo

ENOUGH = 48  # colours for a diagram


def in_few_colours(png: bytes, metadata: Mapping[str, str], colours: int = ENOUGH) -> bytes:
    """Return the PNG in so few colours, in less than half the bytes.

    They are spread over all colours that occur, however seldom: a rare one means something, too.
    `metadata` has texts to store inside the PNG, by their names.
    """
    info = PngInfo()
    for name, words in metadata.items():
        info.add_itxt(name, words)
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    few = picture.quantize(colours, Image.Quantize.MAXCOVERAGE)
    small = io.BytesIO()
    few.save(small, "PNG", optimize=True, pnginfo=info)
    return small.getvalue()
