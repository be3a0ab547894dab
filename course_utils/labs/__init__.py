"""The labs."""

from course_utils.labs.einsum_lab import einsum_lab
from course_utils.labs.float_lab import float_lab
from course_utils.labs.matmul_lab import matmul_lab
from course_utils.labs.optimizer_lab import optimizer_lab
from course_utils.labs.stride_lab import stride_lab

__all__ = ["einsum_lab", "float_lab", "matmul_lab", "optimizer_lab", "stride_lab"]
