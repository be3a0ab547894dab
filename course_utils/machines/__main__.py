"""Record this machine: `python -m course_utils.machines`."""

from course_utils.machines.recorder import record

if __name__ == "__main__":
    record()
