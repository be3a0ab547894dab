"""The course in other languages: English is parsed first everywhere, and translated last.

A language has a folder of catalogues here, such as `zh_CN`, one PO file for each source: a notebook
or a page of text. `units` cuts a text into what is translated at a time, `sources` lists what there
is to translate, and `catalogue` compares that with a PO file, whose header nobody reads. `entry`
says what is wrong with a translation, and `numbers` whether its numbers are those of the English.
"""
