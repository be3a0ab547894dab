"""A folder for each notebook: its exercises, labs, figures and helpers. A chapter may use an earlier one's."""
