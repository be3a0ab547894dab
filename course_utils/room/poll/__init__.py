"""The room's process: phones send guesses, and the wall shows how many and, when it is time, which.

`rounds` knows what was asked and guessed, `typed` reads a number as people type it, `apps` lets phones and the wall
at it by HTTP, and `gate` bounds what one address can take. All of it lives in memory until `keep` writes counts.
"""
