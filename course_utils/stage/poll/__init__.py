"""The room's process: phones send guesses; the wall shows how many, and later which ones.

The wall is the page on the projector. `rounds` holds the questions and the guesses, and `typed`
reads a number as people type it. `apps` answers the requests of phones and of the wall, `gate`
limits the connections of one address, and `table` writes the guesses for a spreadsheet. Everything
is in memory until the presenter keeps it: then the counts are written to files.
"""
