"""A tensor is a way to walk through a storage: most operations change the walk, and only a few copy the numbers.

After two minutes the reader has seen a transpose, a slice and an expansion leave the storage as it is, has found an
element's place by offset and strides, and has seen why a view is refused where a reshape copies.
"""

import math

from course_utils import chains
from course_utils.labs.lab import Change, Lab
from course_utils.labs.stride.asked import BUTTONS, PRESETS, Chain, appending, pointed_at
from course_utils.labs.stride.picture import view


class StrideLab(Lab):
    """A storage, and the tensor that a chain of operations makes of it."""

    name = "Stride lab"
    asks, presets = Chain, PRESETS
    found = None
    view, pick = staticmethod(view), staticmethod(pointed_at)

    def known(self, chain: Chain, found: object) -> int | None:
        """The element's place in the storage by torch's own pointer, if there is such an element."""
        import torch

        from course_utils import measure

        if chain.index is None:
            return None
        t = torch.arange(math.prod(chain.sizes)).to(measure.DTYPES[chain.dtype]).view(chain.sizes)
        for link in chain.links[: len(chain.way.tensors) - 1]:
            t = getattr(t, link.name)(*link.arguments) if link.name else t[link.arguments]
        return (t[chain.index].data_ptr() - t.untyped_storage().data_ptr()) // t.element_size()

    def undo(self, chain: Chain, found: object) -> Change:
        """Take the last operation away."""
        return Change({"operations": chains.typed(chain.links[:-1])})

    actions = {label: appending(link) for label, link in BUTTONS.items()} | {"undo": undo}
