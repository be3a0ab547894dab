"""The advice on a ^ that was meant as a power, as the notebooks' prose writes one: 2^k.

In Python the sign is an operation on bits. It fails on floats, and of whole numbers it makes
another number without a word.
"""

import ast
import inspect
import textwrap
import traceback
from collections.abc import Callable

from course_utils.core.say.language import template, translated
from course_utils.engine.judging.errors import said_by

POWER = template(
    "In Python, a power is written with **, as in 2**k. The sign ^ is another operation, on bits."
)
# How a TypeError of Python's begins, and what an error of torch's contains.
OF_PYTHON = "unsupported operand type(s) for ^"
OF_TORCH = "bitwise_xor"


def advice_on_result(function: Callable[..., object]) -> str:
    """Return the advice if the function's source has a ^; empty if not, or if it has no source."""
    return translated(POWER) if _has_caret(function) else ""


def advice_on_stop(function: Callable[..., object], error: BaseException) -> str:
    """Return the advice if a ^ in the function's cell has raised the error; else empty.

    A division by a ^ that comes to 0, or a power of one that is too large, has it in its source.
    """
    if isinstance(error, ArithmeticError):
        return advice_on_result(function)
    if not isinstance(error, TypeError | RuntimeError) or not _is_own(function, error):
        return ""
    message = said_by(error)
    is_said = message.startswith(OF_PYTHON) or OF_TORCH in message
    return translated(POWER) if is_said else ""


def _is_own(function: Callable[..., object], error: BaseException) -> bool:
    """Whether the error comes from a line of the function's cell, and not of what it calls."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    return code is not None and files[-1:] == [code.co_filename]  # each cell has a name of its own


def _has_caret(function: Callable[..., object]) -> bool:
    """Whether a ^ is an operation in the function's source, and not in a comment or a string."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError, ValueError):  # no source, or a part of a line
        return False
    return any(isinstance(node, ast.BitXor) for node in ast.walk(tree))
