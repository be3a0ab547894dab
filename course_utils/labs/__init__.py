"""The labs: one file each, over one shared panel."""

from course_utils.labs.float_lab import float_lab

__all__ = ["float_lab"]
