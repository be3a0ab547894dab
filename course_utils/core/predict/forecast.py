"""From a bound to a forecast: a product takes c + roof / e seconds.

The roof is the least time of the product. c and e are fitted to products that were timed.
"""

import math
import random
import statistics
from collections.abc import Mapping

from course_utils.core.datasheets import Machine
from course_utils.core.predict.operations import matmul_seconds
from course_utils.core.say import Number

Timed = Mapping[tuple[int, int, int], Number]  # seconds by (B, D, K)
FEWEST = 8  # products that are needed to fit one half and try the other


def product_seconds(
    b: int, d: int, k: int, machine: Machine, dtype: str, c: Number, e: Number
) -> Number:
    """Return c + roof / e, where the roof is `matmul_seconds`.

    With c = 0 and e = 1, the result is the roof itself.

    c is a kernel's own price in seconds, which the smallest product pays, too. e is the share of
    the roof's speed that large products get.

    >>> from course_utils.core.datasheets import MACHINES
    >>> h100 = MACHINES["H100 SXM"]
    >>> round(1e6 * product_seconds(1024, 1024, 1024, h100, "bf16", c=5.5e-6, e=0.78), 2)
    8.28
    """
    if not 0 <= c < math.inf:
        raise ValueError(
            f"c is a kernel's own price in seconds, 0 or more, such as 5e-6; got {c!r}."
        )
    if not 0 < e <= 1:
        raise ValueError(f"e is a share, above 0 and at most 1, such as 0.8; got {e!r}.")
    roof_s = matmul_seconds(b, d, k, machine, dtype)
    return c + roof_s / e


def forecast_errors(
    timed: Timed, machine: Machine, dtype: str, c: Number, e: Number
) -> tuple[Number, Number]:
    """Return the median of |measured / forecast - 1|, and the largest factor between the two.

    `timed` has the measured seconds of products. `product_seconds` forecasts the seconds of each
    from c and e. The factor is measured / forecast or forecast / measured, whichever is above 1.
    """
    _check_number(timed, 1)  # a median needs at least one value
    ratios = []
    for (b, d, k), seconds in timed.items():
        ratios.append(seconds / product_seconds(b, d, k, machine, dtype, c, e))
    median = statistics.median(abs(ratio - 1) for ratio in ratios)
    worst = max(max(ratio, 1 / ratio) for ratio in ratios)
    return median, worst


def fitted_forecast(timed: Timed, machine: Machine, dtype: str) -> tuple[Number, Number]:
    """Return c and e, fitted so that c + roof / e is close to the seconds of products in `timed`.

    Every e in whole percent is tried. Its c is the median of measured - roof / e, and at least 0.
    The pair with the smallest mean of |ln(measured / forecast)| is returned: by this measure, twice
    as long is as far off as half as long.
    """
    _check_number(timed, 2)  # two products for two numbers, c and e
    roofs = [matmul_seconds(b, d, k, machine, dtype) for b, d, k in timed]
    times = list(zip(roofs, timed.values(), strict=True))
    tried = []
    for percent in range(1, 101):
        e = percent / 100
        typical_rest = statistics.median(seconds - roof / e for roof, seconds in times)
        c = max(0.0, typical_rest)  # a kernel's price is never below 0
        logs = [math.log(seconds / (c + roof / e)) for roof, seconds in times]
        error = statistics.fmean(map(abs, logs))
        tried.append((error, c, e))
    _, c, e = min(tried)  # tuples are compared by their first number, the error
    return c, e


def random_halves(timed: Timed, seed: int = 0) -> tuple[Timed, Timed]:
    """Return two random halves of the products: one to fit, the other to try the fit on.

    The same seed gives the same halves.
    """
    _check_number(timed, FEWEST)
    sizes = sorted(timed)  # so that the seed alone decides
    random.Random(seed).shuffle(sizes)
    half = len(sizes) // 2
    fitted = {size: timed[size] for size in sizes[:half]}
    tried = {size: timed[size] for size in sizes[half:]}
    return fitted, tried


def _check_number(timed: Timed, fewest: int) -> None:
    """Raise a ValueError if `timed` has fewer than `fewest` products."""
    if len(timed) < fewest:
        raise ValueError(
            f"It takes at least {fewest} products that were timed; there are {len(timed)}. "
            "Time more."
        )
