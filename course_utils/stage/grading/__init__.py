"""Grades what a class handed in: tables of verdicts, and a page of feedback for each student.

Two kinds of process share the work. `answering` is the process that runs what students wrote: it
runs in a `sandbox`, and holds nothing that an answer must not know. There, `flags` and `noting`
look for what has no place in an answer, and `observing` reports what an answer does to a model, a
training loop or a file. The judge's process, `judging`, never runs a student's code: what its
checks call is an object from `asking`, which passes each call on to the other process. Only plain
values go through the `channel` between the two, and `wire` encodes them.
"""
