"""The exercises' answers: one module a notebook, each check against a slow oracle that can be read."""
