"""What surrounds a notebook: copies and contents page, presentation, poll, decks, hub, pages, grading, Colab.

Nothing imports it; without it, all notebooks run.
"""
