"""Closed forms: bytes, FLOPs, seconds and days, from shapes alone.

Nothing here runs what it predicts. Where the accountant has a formula, this package calls it, and
adds the formulas that the accountant does not have. Every function on a model takes the
accountant's `Model`.

The convention, everywhere: a multiply-add is 2 FLOPs; element-wise operations, reductions and
optimizers count 0 unless a docstring says otherwise; attention is counted unmasked. Symbols: B
batch, D input width, K output width, L layers, S sequence length, H width of the model, A heads, V
vocabulary, P parameters, N tokens trained on.
"""

from course_utils.core.predict.forecast import (
    fitted_forecast,
    forecast_errors,
    product_seconds,
    random_halves,
)
from course_utils.core.predict.known import MODELS, known
from course_utils.core.predict.mlp import mlp_flops
from course_utils.core.predict.operations import (
    DTYPE_BYTES,
    dtype_bytes,
    einsum_flops,
    intensity,
    matmul_bytes,
    matmul_flops,
    matmul_seconds,
    ridge,
    tensor_bytes,
)
from course_utils.core.predict.parabola import largest_lr, largest_settled_lr, settled_loss
from course_utils.core.predict.rounding import lossless_powers, rounding_edges
from course_utils.core.predict.saving import daly_seconds, wasted_share, young_seconds
from course_utils.core.predict.step_config import FUSED_LOSSES, RECOMPUTE
from course_utils.core.predict.storages import Operation
from course_utils.core.predict.timeline import Timeline, timeline
from course_utils.core.predict.training import (
    RECIPES,
    days_by_part,
    largest_model,
    mfu,
    training_bytes,
    training_days,
    training_flops,
)
from course_utils.core.predict.transformer import Shape, Transformer, shape_of
