"""Notebook 6: what an optimizer keeps."""
