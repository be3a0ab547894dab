"""Notebook 7: training in fewer bits."""
