"""Tests of `course_utils/stage`."""
