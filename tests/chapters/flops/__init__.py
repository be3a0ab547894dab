"""Tests of `course_utils/chapters/flops`."""
