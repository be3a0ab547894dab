"""Tests of `course_utils/chapters/tensors`."""
