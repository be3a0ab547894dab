"""What the box lab asks: the three sizes of a product."""

from dataclasses import dataclass

from course_utils.engine.labs.fields import whole

LARGEST = 10
PRESETS = {
    "what does one token cost?": {"b": 1, "d": 8, "k": 8},
    "and eight of them?": {"b": 8, "d": 8, "k": 8},
    "what costs as much as a long row?": {"b": 2, "d": 2, "k": 10},
}


@dataclass(frozen=True)
class Sizes:
    """The sizes of x, (B, D), times w, (D, K)."""

    # Of each: its label, its default, the least and the most.
    b: int = whole("B", 4, 1, LARGEST, width_px=190)
    d: int = whole("D", 8, 1, LARGEST, width_px=190)
    k: int = whole("K", 5, 1, LARGEST, width_px=190)

    def counted_flops(self) -> int:
        """Count the multiplications and additions of the product, cube by cube."""
        flops = 0
        for _row in range(self.b):
            for _column in range(self.k):
                for _cube in range(self.d):
                    flops += 1  # x[b, d] * w[d, k]
                    flops += 1  # added to y[b, k]
        return flops
