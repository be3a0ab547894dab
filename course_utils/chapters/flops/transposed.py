"""The times of the exercise on products whose right factor is transposed: cases and the answer."""

from course_utils.core.say import Number

# The seconds of a square, a wide and a narrow product, as OpenXLA's table has them: each is half of
# the time that the product P and the transposition T of its right factor take together. The right
# factors of the square and the wide product are equally large, the narrow one's is an eighth:
#
#     2 · square = P(square) + T
#     2 · wide   = P + T
#     2 · narrow = P + T / 8      (without their transpositions, both take the same time P)
#
# The difference of the last two lines is 2 · (wide - narrow) = 7/8 · T, so T = 16/7 · (wide -
# narrow). The first three numbers are OpenXLA's, the others are made up.
HALVES = [
    (56.705e-6, 17.872e-6, 11.056e-6),
    (56e-6, 16e-6, 9e-6),
    (45e-6, 24e-6, 6.5e-6),
]


def transposition_s(wide: Number, narrow: Number) -> Number:
    """Return the seconds in which the right factor of the wide product is transposed.

    The arguments are those of `square_alone`: each is half of the seconds of a product and the
    transposition of its right factor. The time is the one with which both products alone take
    equally long. It is found by bisection, and not by the formula that a reader writes.
    """
    least = 0.0
    most = 2 * wide  # the seconds of the wide product and its transposition together
    while most - least > 1e-12:  # a picosecond, where the times are microseconds
        transposition = (least + most) / 2
        wide_product = 2 * wide - transposition
        narrow_product = 2 * narrow - transposition / 8
        if wide_product > narrow_product:  # the transposition takes longer than supposed
            least = transposition
        else:
            most = transposition
    return transposition
