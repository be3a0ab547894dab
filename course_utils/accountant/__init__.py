"""What training takes, by a program that the reader writes, term by term: `accountant.py` is the course's version of it.

`from course_utils.accountant import parameters` gives the reader's own, if it is kept in their file and right, and ours
if not.
"""


def __getattr__(name: str) -> object:
    if name.startswith("_"):
        raise AttributeError(name)
    from course_utils.accountant.keeping import offered  # now, since it asks this module for its parts

    return offered(name)
