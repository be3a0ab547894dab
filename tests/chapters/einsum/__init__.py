"""Tests of `course_utils/chapters/einsum`."""
