"""For those who teach: a notebook shown to an audience, and decks of slides."""
