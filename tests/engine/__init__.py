"""Tests of `course_utils/engine`, over all chapters."""
