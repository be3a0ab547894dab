"""A format is a grid of numbers with gaps and ends: between two of them a number is rounded, beyond them it is lost.

After two minutes the reader has seen one number keep its value in some formats, lose digits in others and fall off the
end of a few, and has flipped the bits that decide it.
"""

from collections.abc import Iterator

from course_utils import floats
from course_utils.labs.float.asked import PRESETS, Cast, flipped
from course_utils.labs.float.picture import NAMES, view
from course_utils.labs.lab import Lab, Progress
from course_utils.quantities import listed

AT_ONCE = 4096  # patterns between two reports


class FloatLab(Lab):
    """A number in eight formats, and every bit to flip."""

    name = "Float lab"
    asks, presets = Cast, PRESETS
    rows = (("number", "times_two_to_the", "saturate"),)  # a figure may have fewer formats
    view, pick = staticmethod(view), staticmethod(flipped)

    def check_every_pattern(self, cast: Cast, found: object) -> Iterator[Progress]:
        """Decode and encode every pattern of every format up to 19 bits, and count where the libraries differ."""
        from course_utils import measure

        small = measure.SMALL_FORMATS
        patterns = sum(2 ** floats.FORMATS[fmt].bits for fmt in small)
        every = ((fmt, *pair) for fmt in small for pair in enumerate(measure.every_value(fmt)))
        differ = 0
        for done, (fmt, bits, theirs) in enumerate(every, start=1):
            ours = floats.decode(bits, fmt)
            same = ours == theirs and floats.encode(theirs, fmt) == bits
            differ += not (same or (ours != ours and theirs != theirs))
            if done % AT_ONCE == 0:
                said = f"{done:,} of {patterns:,} patterns, now {NAMES[fmt]}; {differ} differ."
                yield Progress(done / patterns, said)
        yield Progress(1, f"{done:,} patterns of {listed([NAMES[fmt] for fmt in small])}: {differ} differ.")

    jobs = {"Check every pattern against torch and ml_dtypes": check_every_pattern}
    needs_kernel = {*jobs}
