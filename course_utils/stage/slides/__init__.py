"""Decks for the room: each notebook as one HTML file that needs nothing else.

`make slides` calls it. `choice` says what of a notebook is worth showing, `formulas` draws LaTeX,
and `deck` puts both into the template. In the browser, where heights are known, `deck.js` parts the
stream of cells into slides.
"""
