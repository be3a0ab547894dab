"""Tests of `course_utils/core`."""
