"""How a verdict of notebook 8 names its case, where the arguments are seconds."""

from course_utils.core.say import Number, number_text
from course_utils.core.say.language import translated


def interval_case_in_words(save_s: Number, failure_s: Number) -> str:
    """Return the case in words.

    >>> interval_case_in_words(45.0, 20_000.0)
    'With 45 s for a save and a failure every 20,000 s'
    """
    return translated(
        "With {save} s for a save and a failure every {failure} s",
        save=number_text(save_s),
        failure=number_text(failure_s),
    )


def lost_case_in_words(
    interval_s: Number, save_s: Number, failure_s: Number, restart_s: Number
) -> str:
    """Return the case in words.

    >>> lost_case_in_words(1_800.0, 40.0, 25_000.0, 500.0)
    'With a save of 40 s every 1,800 s, and a failure every 25,000 s with a restart of 500 s'
    """
    return translated(
        "With a save of {save} s every {interval} s, and a failure every {failure} s with a "
        "restart of {restart} s",
        save=number_text(save_s),
        interval=number_text(interval_s),
        failure=number_text(failure_s),
        restart=number_text(restart_s),
    )
