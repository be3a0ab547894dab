"""Decks for the room: each notebook as one HTML file that needs nothing else.

`make slides` writes the decks. `choice` chooses what of a notebook a deck shows, `formulas` draws
LaTeX, and `deck` puts the pieces into the template. In the browser, where heights are known,
`deck.js` divides the pieces into slides.
"""
