"""Questions that return with new sizes, weeks after a reader has met what they ask for.

`bank` has the questions of all eight notebooks, and `due` says which of them come due on a day.
`page` asks three of them in the browser. `napkin` asks ten over the whole course, on paper or in
the browser, and `cards` makes a deck for Anki.
"""
