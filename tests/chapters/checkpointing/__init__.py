"""Tests of `course_utils/chapters/checkpointing`."""
