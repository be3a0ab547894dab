"""What a notebook has, said in one place: all of the stage that wants to know it asks here.

`files` reads and writes a notebook, `about` says what it says of itself in its metadata, and
`outline` what is in it: sections, guesses, turns, figures and reveals, as data. Those are found
in its code by `code` and in its text by `prose`, which is the only place that guesses at
sentences.
"""
