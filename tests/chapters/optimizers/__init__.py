"""Tests of `course_utils/chapters/optimizers`."""
