"""A tensor is a way to walk through a storage: most operations change the walk, and only a few copy the numbers.

After two minutes the reader has seen a transpose, a slice and an expansion leave the storage as it is, has found an
element's place by offset and strides, and has seen why a view is refused where a reshape copies.
"""

from course_utils import chains
from course_utils.labs.lab import Change, Lab
from course_utils.labs.stride.asked import BUTTONS, PRESETS, Chain, Way, appending, pointed_at
from course_utils.labs.stride.picture import view


class StrideLab(Lab):
    """A storage, and the tensor that a chain of operations makes of it."""

    name = "Stride lab"
    asks, presets = Chain, PRESETS
    view, pick = staticmethod(view), staticmethod(pointed_at)

    def known(self, chain: Chain, found: object) -> Way:
        """Every tensor on the way."""
        from course_utils.labs.stride import jobs

        return jobs.refresh(chain, found)

    def undo(self, chain: Chain, way: Way) -> Change:
        """Without the last operation."""
        return Change({"operations": chains.typed(chain.links[:-1])})

    actions = {label: appending(link) for label, link in BUTTONS.items()} | {"undo": undo}
