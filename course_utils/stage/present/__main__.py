"""`make present NB=04`."""

import sys

from course_utils.stage.present.server import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
