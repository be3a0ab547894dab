"""A product's time can be predicted: it takes as long as the slower of its arithmetic and its memory.

After two minutes the reader has seen a thin product hit the memory's limit and a square one the arithmetic's, and
how near a measurement comes to either.
"""

from course_utils.labs.lab import Lab
from course_utils.labs.matmul import anywhere
from course_utils.labs.matmul.asked import PRESETS, Found, Product
from course_utils.labs.matmul.picture import view

LAB = Lab(
    "Matmul lab",
    Product,
    view,
    presets=PRESETS,
    jobs={"Time it": anywhere.time_it, "Sweep": anywhere.sweep, "Measure the roof again": "measure_again"},
    actions={"Clear history": anywhere.clear},
    found=Found(),
    rows=(("b", "d", "k"), ("dtype", "guess", "sweep"), ("where",)),
)
