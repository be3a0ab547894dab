"""Write and read a run's state, one file or a folder of steps, so that a crash loses nothing that was saved."""

from course_utils.checkpoints.contents import file_bytes
from course_utils.checkpoints.files import load, save
from course_utils.checkpoints.steps import Newest, newest, save_step
