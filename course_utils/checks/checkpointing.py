"""The exercises of notebook 08."""

from course_utils import predict
from course_utils.checks.accountant import interval, lost_share, step_bytes, step_flops  # noqa: F401  the accountant's
from course_utils.checks.judging import Answers, value
from course_utils.checks.whole_file import write_whole  # noqa: F401  exercises, too


@value(wanted="the bytes of all that cannot be made anew", tolerance=1e-6)
def checkpoint_bytes() -> Answers:
    """What a run of 8 billion parameters has to save, with a master copy."""
    parameters = 8_000_000_000
    each = predict.RECIPES["bf16+master adamw"].bytes_by_part
    right = parameters * (each["optimizer"] + each["master"])
    yield right, "4 for the master, 4 + 4 for the averages: 96 GB."
    anew = parameters * 16
    yield anew, "Gradients are made anew, and the bf16 parameters are the master's, rounded."
    yield parameters * 14, "The bf16 parameters can be had from the master."
    yield parameters * 8, "The master is needed too: the bf16 parameters have lost its digits."
    yield parameters * 10, "The bf16 parameters have lost the master's digits."
    yield parameters * 4, "AdamW's two averages are needed too."
    yield 12, "That is for each parameter; there are 8 billion."
    yield parameters * 2, "That is the model in bf16. A run needs its master and AdamW's averages."
    yield right / 1e9, "That is in GB. In bytes, please."
