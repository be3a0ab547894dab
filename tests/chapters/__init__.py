"""Tests of `course_utils/chapters`, a folder for each notebook."""
