"""The labs. Each function has the name of its module and stands before it: `labs.float_lab` is the function."""

from course_utils.labs.crash_lab import crash_lab
from course_utils.labs.einsum_lab import einsum_lab
from course_utils.labs.float_lab import float_lab
from course_utils.labs.gradient_lab import gradient_lab
from course_utils.labs.matmul_lab import matmul_lab
from course_utils.labs.memory_lab import memory_lab
from course_utils.labs.optimizer_lab import optimizer_lab
from course_utils.labs.precision_lab import precision_lab
from course_utils.labs.recompute_lab import recompute_lab
from course_utils.labs.stride_lab import stride_lab

__all__ = [
    "crash_lab",
    "einsum_lab",
    "float_lab",
    "gradient_lab",
    "matmul_lab",
    "memory_lab",
    "optimizer_lab",
    "precision_lab",
    "recompute_lab",
    "stride_lab",
]
