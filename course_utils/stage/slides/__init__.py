"""Decks for the room: each notebook as one HTML file that needs nothing else. Called by `make slides`.

`choice` says what of a notebook is worth showing, `formulas` draws LaTeX, `deck` puts both into the
template, and `deck.js` parts the stream of cells into slides in the browser, where heights are known.
"""
