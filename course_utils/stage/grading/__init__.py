"""What a class hands in, judged by the checks: a table, a row for each student, and a page of feedback for each.

Two kinds of process share the work. `answering` runs what students wrote, in a `sandbox`, and knows nothing that an answer
may not know; `flags` and `noting` look for what has no place in an answer, and `observing` watches live things. `judging`
runs nothing of a student's: to a check, `asking` stands for the answer. Between them `wire` has plain values alone.
"""
