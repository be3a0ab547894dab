"""The room's process: phones send guesses, and the wall shows how many and, when it is time, which.

`rounds` knows what was asked and guessed, and `typed` reads a number as people type it. `apps`
answers phones and the wall by HTTP, `gate` bounds what one address can take, and `table` writes
what was guessed for a spreadsheet. All of it lives in memory until `keep` writes counts.
"""
