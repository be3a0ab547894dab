"""A format is a grid of numbers with gaps and ends: between two of them a number is rounded, beyond them it is lost.

After two minutes the reader has seen one number keep its value in some formats, lose digits in others and fall off the
end of a few, and has flipped the bits that decide it.
"""

from course_utils.labs.float.asked import PRESETS, Cast, flipped
from course_utils.labs.float.picture import view
from course_utils.labs.lab import Lab

LAB = Lab(
    "Float lab",
    Cast,
    view,
    presets=PRESETS,
    jobs={"Check every pattern against torch and ml_dtypes": "check_every_pattern"},
    pick=flipped,
)
