"""A pattern says all about a product: its loops, what they cost, and, of three or more operands, the best order.

After two minutes the reader has seen that a name which the result lacks is an inner loop that sums, that each name's
size multiplies the FLOPs once, and that the order alone can make a product of three hundreds of times as expensive.
"""

from course_utils.labs.einsum.asked import PRESETS, Asked
from course_utils.labs.einsum.picture import view
from course_utils.labs.lab import Lab

LAB = Lab(
    "Einsum lab",
    Asked,
    view,
    presets=PRESETS,
    jobs={"Check against the loops": "check", "Time it": "time_it"},
    rows=(("pattern", "notation", "dtype"), ("sizes",)),
)
