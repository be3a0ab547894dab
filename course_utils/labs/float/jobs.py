"""Two other libraries' opinion on every pattern."""

from collections.abc import Iterator

from course_utils import floats, measure
from course_utils.labs.float.asked import Cast
from course_utils.labs.float.picture import NAMES
from course_utils.labs.lab import Progress
from course_utils.quantities import listed

AT_ONCE = 4096  # patterns between two reports


def check_every_pattern(cast: Cast, found: object) -> Iterator[Progress]:
    """Decode and encode every pattern of every format up to 19 bits, and count where the libraries differ."""
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
    yield Progress(1, f"All {done:,} patterns of {listed([NAMES[fmt] for fmt in small])}: {differ} differ.")
