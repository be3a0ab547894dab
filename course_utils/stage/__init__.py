"""What surrounds a notebook.

That is the reader's copies and the contents page, presentations, polls, decks, hubs, pages, grading
and Colab. No other part of the course imports the stage, so all notebooks run without it.
"""
