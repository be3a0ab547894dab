"""A tensor is a way to walk through a storage: most operations change the walk, and only a few copy the numbers.

After two minutes the reader has seen a transpose, a slice and an expansion leave the storage as it is, has found an
element's place by offset and strides, and has seen why a view is refused where a reshape copies.
"""

from functools import partial

from course_utils.labs.lab import Lab
from course_utils.labs.stride.asked import BUTTONS, PRESETS, Chain, append, pointed_at, undo
from course_utils.labs.stride.picture import view

LAB = Lab(
    "Stride lab",
    Chain,
    view,
    presets=PRESETS,
    actions={label: partial(append, link) for label, link in BUTTONS.items()} | {"undo": undo},
    pick=pointed_at,
)
