"""What a notebook contains. Every other part of the stage asks here, so that all find the same.

`files` reads and writes a notebook. `about` reads its metadata, where it says its title, question
and minutes. `outline` lists its sections, guesses, turns, figures and reveals as data; it finds
them with `code` in the code cells, and with `prose` in the text cells. Only `prose` recognises
anything by the wording of sentences.
"""
