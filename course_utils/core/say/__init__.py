"""What was counted, what was predicted, what the reader guessed, and how all that is written.

A `Ledger` is one account: named items in one unit. A `Comparison` sets a predicted ledger beside a
measured one; predictions are never set beside measurements in any other way. A `Choice` is a
comparison of words instead of numbers.
"""

from course_utils.core.say.comparisons import Choice, Comparison, Ledger
from course_utils.core.say.guesses import Guess
from course_utils.core.say.open_guesses import OpenGuess
from course_utils.core.say.reveals import reveal
from course_utils.core.say.tables import Table, side_by_side, table
from course_utils.core.say.wording import (
    Number,
    bytes_text,
    count_text,
    decimal_bytes_text,
    flops_text,
    in_words,
    listed,
    number_text,
    rate_text,
    seconds_text,
    three_digits,
    times_text,
)
