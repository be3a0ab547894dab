"""Tests of `course_utils/chapters/mixed_precision`."""
