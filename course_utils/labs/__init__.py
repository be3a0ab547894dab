"""The labs."""

from course_utils.labs.float_lab import float_lab
from course_utils.labs.matmul_lab import matmul_lab

__all__ = ["float_lab", "matmul_lab"]
