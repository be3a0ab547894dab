"""Write and read a run's state, so that a crash loses nothing that was saved."""

from course_utils.subjects.checkpoints.contents import file_bytes
from course_utils.subjects.checkpoints.files import load, save
