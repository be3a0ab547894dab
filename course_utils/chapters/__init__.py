"""A folder for each notebook, with its exercises, labs, figures and helpers.

A chapter may use what an earlier one has.
"""
