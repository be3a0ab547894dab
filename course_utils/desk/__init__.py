"""The student's desk: own copies of the notebooks, what is done of the exercises, and the page that shows it.

Nothing here needs torch, and nothing leaves the reader's machine.
"""
