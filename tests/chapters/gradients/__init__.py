"""Tests of `course_utils/chapters/gradients`."""
