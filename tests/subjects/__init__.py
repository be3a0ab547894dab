"""Tests of `course_utils/subjects`."""
