"""The parts of the sums that notebook 8 asks for, the accountant's terms among them.

If a reader's sum is wrong, the check can name the parts that are missing or wrong.
"""

from course_utils.core import accountant
from course_utils.core.accountant import LOGIT_BYTES, Model
from course_utils.core.say import Number


def of_step_bytes(
    m: Model, batch: int, sequence: int, dtype: str, recomputed: int
) -> dict[str, int]:
    """Return, by part, the bytes that a training step adds at the loss."""
    one_input = accountant.tensor_bytes((batch, sequence, m.width), dtype)  # of a layer
    layer = accountant.layer_bytes(m, batch, sequence, dtype)
    return {
        "layers kept whole": (m.layers - recomputed) * layer,
        "inputs of recomputed layers": recomputed * one_input,
        "last normalisation": 2 * one_input,  # its input, and its result of the same size
        "loss": LOGIT_BYTES * batch * sequence * m.vocabulary,
    }


def of_step_flops(m: Model, batch: int, sequence: int, recomputed: int) -> dict[str, int]:
    """Return, by part, the FLOPs of a step that recomputes some layers."""
    forward = accountant.forward_flops(m, batch, sequence)
    with_recomputing = accountant.step_flops(m, batch, sequence, recomputed)
    down = 2 * batch * sequence * m.inner * m.width  # a layer's last product
    saved = recomputed * down  # as torch stops early, before that product
    return {
        "forward pass": forward,
        "backward pass": 2 * forward,
        # Without the two passes above, and as if they ran to their end.
        "recomputed layers": with_recomputing - 3 * forward + saved,
        "early stop": -saved,
    }


def of_lost_share(
    interval_s: Number, save_s: Number, failure_s: Number, restart_s: Number
) -> dict[str, Number]:
    """Return, by part, the share of the time that is lost."""
    return {
        "saves": save_s / interval_s,
        "lost work": interval_s / (2 * failure_s),  # half an interval at each failure
        "restarts": restart_s / failure_s,
    }


def of_lost_in_background(
    copy_s: Number, write_s: Number, interval_s: Number, failure_s: Number, restart_s: Number
) -> dict[str, Number]:
    """Return, by part, the share of the time that is lost in a run that works while it saves."""
    return {
        "copies": copy_s / interval_s,
        "lost work": interval_s / (2 * failure_s),
        # In write_s of every interval_s, a failure costs a whole interval more.
        "unfinished writes": write_s / failure_s,
        "restarts": restart_s / failure_s,
    }
