"""A pattern says all about a product: its loops, their cost, and the best order of three or more.

After two minutes the reader has seen that a name which the result lacks is an inner loop that sums,
that each name's size multiplies the FLOPs once, and that the order alone can make a product of
three hundreds of times as expensive.
"""

from collections.abc import Iterator

from course_utils.chapters.einsum.einsum_lab.asked import PRESETS, Asked, Found
from course_utils.chapters.einsum.einsum_lab.picture import view
from course_utils.engine.labs.lab import Lab, Progress


class EinsumLab(Lab):
    """A pattern with its loops, its cost, and its orders."""

    name = "Einsum lab"
    asks = Asked
    presets = PRESETS
    rows = (("pattern", "dtype"), ("sizes",))
    view = staticmethod(view)

    def time_it(self, asked: Asked, found: Found) -> Iterator[Progress]:
        """Time the cheapest order, another that is as cheap, and the dearest that can still run."""
        from course_utils.chapters.einsum.einsum_lab import jobs

        return jobs.time_it(asked)

    jobs = {"Time it": time_it}
    needs_kernel = {"Time it"}
