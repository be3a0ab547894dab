"""Tests of `course_utils/chapters/floats`."""
