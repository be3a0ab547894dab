"""Checks of the exercises, a module for each notebook."""

from course_utils.checks.after_cell import note_what_is_shown

note_what_is_shown()
