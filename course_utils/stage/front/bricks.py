"""What the accountant says of Llama 3 8B, term by term, as the bricks of a wall.

The numbers are stored and not computed, because one of them needs torch. A test holds them against
the table of the notebooks, which the accountant computes.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from course_utils.core.accountant_file import TERMS
from course_utils.core.say.language import template, translated

MODEL = "Llama 3 8B"
# For each term what it counts, and its number.
SAYS = {
    "tensor_bytes": (template("the embedding, in bf16"), "1.05 GB"),
    "storage_bytes": (template("the embedding and one of its rows"), "1.05 GB"),
    "matrices": (template("the matrices of a layer"), template("218 million weights")),
    "parameters": (template("the whole model"), template("8.03 billion parameters")),
    "forward_flops": (template("FLOPs of a forward pass, 8,192 tokens"), "158 TFLOPs"),
    "days": (template("days on 1,024 H100s at half of their peak"), template("19.8 days")),
    "layer_bytes": (template("what a layer keeps of 8,192 tokens, bf16"), "1.38 GB"),
    "state_bytes": (template("state with AdamW in fp32, on one GPU"), "128 GB"),
    "recipe": (template("state of a parameter, bf16 with a master"), template("16 bytes")),
    "step_bytes": (template("what a step adds, all recomputed, bf16"), "14.9 GB"),
    "step_flops": (template("FLOPs of a step, all layers recomputed"), "593 TFLOPs"),
    "interval": (template("time between two saves"), template("77.1 minutes")),
    "lost_share": (template("share of the time that is lost, at most"), "2.76 %"),
}


@dataclass(frozen=True)
class Brick:
    """A term of the accountant: what it counts of the model, and its number.

    `link` opens the turn in which it is written; it is empty if there is no such copy.
    """

    name: str
    counts: str
    number: str
    notebook: int
    is_laid: bool  # whether the term is the reader's, and right
    link: str = ""
    window: str = ""  # the name of the tab in which the link opens


@dataclass(frozen=True)
class Place:
    """Where a term is written: the notebook's number, a link to the turn, and the link's tab."""

    notebook: int
    link: str
    window: str


def wall(places: Mapping[str, Place], laid: Collection[str]) -> list[Brick]:
    """Return a brick for each term, in the order in which the accountant has them.

    `places` has where the terms are written, and `laid` the names of the reader's right ones.
    """
    bricks = []
    for name in TERMS:
        counts, number = SAYS[name]
        place = places.get(name, Place(0, "", ""))
        bricks.append(
            Brick(
                name=name,
                counts=translated(counts),
                number=translated(number),
                notebook=place.notebook,
                is_laid=name in laid,
                link=place.link,
                window=place.window,
            )
        )
    return bricks
