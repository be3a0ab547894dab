"""Tests of what only a GPU can show."""
