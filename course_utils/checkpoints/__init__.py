"""Write and read a run's state, so that a crash loses nothing that was saved."""

from course_utils.checkpoints.contents import file_bytes
from course_utils.checkpoints.files import load, save
