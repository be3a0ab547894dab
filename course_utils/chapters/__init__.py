"""A folder for each notebook, with its exercises, labs, figures and helpers.

A chapter may import from an earlier one.
"""
