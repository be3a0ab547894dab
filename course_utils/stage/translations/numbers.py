"""Whether a translation has the numbers of its English text.

Chinese counts in 万 (10^4) and 亿 (10^8), and writes some numbers in words where English has
digits, or the other way round. So each number in digits has to have its like on the other side, in
digits or in words. Of "50 to 60 billion", the first number may be fifty or fifty billions.
"""

import math
import re
from collections.abc import Iterator, Sequence

from course_utils.core.say import number_text

NUMBER = r"\d[\d,]*(?:\.\d+)?"
MINUS = "[-\u2212]"  # a hyphen, or the sign itself
# With its sign, but not the hyphen of "GPT-3" and of "3-5".
SIGNED = rf"(?:(?<![A-Za-z\d)]){MINUS})?{NUMBER}"
ENGLISH_POWERS = {
    "hundred": 1e2,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "trillion": 1e12,
}
CHINESE_POWERS = {
    "百": 1e2,
    "千": 1e3,
    "万": 1e4,
    "十万": 1e5,
    "百万": 1e6,
    "千万": 1e7,
    "亿": 1e8,
    "十亿": 1e9,
    "百亿": 1e10,
    "千亿": 1e11,
    "万亿": 1e12,
}
# Between two numbers that share the power behind the second one.
BETWEEN = r"\s*(?:to|and|or|–|-|~|到|至|和|与|或|,|，|、)\s*"
ENGLISH_WORDS = {
    word: value
    for value, words in enumerate(
        (
            "zero no none nothing",
            "one once first a an single each other",
            "two twice second double doubles doubled half halves halved both pair couple twofold",
            "three third thirds thrice triple",
            "four fourth quarter quarters fourths fourfold",
            "five fifth fifths",
            "six sixth",
            "seven seventh",
            "eight eighth eighths eightfold",
            "nine ninth",
            "ten tenth tenths tens tenfold",
            "eleven",
            "twelve dozen twelfth",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen sixteenth",
            "seventeen",
            "eighteen",
            "nineteen",
            "twenty twentieth",
        )
    )
    for word in words.split()
}
TENS = ("thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
ENGLISH_WORDS |= {word: 10 * (number + 3) for number, word in enumerate(TENS)}
# Chinese says 10 月 for October. May is a month only where it stands alone, as in a list of months.
JANUARY_TO_APRIL = ("january", "february", "march", "april")
FROM_JUNE_ON = ("june", "july", "august", "september", "october", "november", "december")
ENGLISH_WORDS |= {month: number for number, month in enumerate(JANUARY_TO_APRIL, 1)}
ENGLISH_WORDS |= {month: number for number, month in enumerate(FROM_JUNE_ON, 6)}
CHINESE_DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九")}
CHINESE_DIGITS |= {"〇": 0, "两": 2, "半": 2, "双": 2, "倍": 2, "首": 1, "单": 1}
CHINESE_TENS = {"十": 10, "百": 100, "千": 1000}
CHINESE_WORD = re.compile(f"[{''.join(CHINESE_DIGITS)}十百千万亿]+")

# The values that a number may have: more than one where it is not known whether a power belongs to
# it, too.
Values = frozenset[float]


def disagreement(english: str, chinese: str) -> list[str]:
    """Return the numbers that only one of the two texts has, as sentences.

    >>> disagreement("15 trillion tokens", "15 万亿个 token")
    []
    >>> disagreement("It takes 4 bytes.", "占 8 个字节。")
    ['The number 4 is missing.', 'The number 8 is not in the English.']
    """
    in_english = list(_in_digits(english, ENGLISH_POWERS))
    in_chinese = list(_in_digits(chinese, CHINESE_POWERS))
    lacking, added = _unmatched(in_english, in_chinese)
    lacking, _ = _unmatched(lacking, list(_in_chinese_words(chinese)))
    added, _ = _unmatched(added, list(_in_english_words(english)))
    faults = [f"The number {_said(values)} is missing." for values in lacking]
    faults += [f"The number {_said(values)} is not in the English." for values in added]
    return faults


def digits_disagree(english: str, other: str) -> list[str]:
    """Return the numbers in digits that only one text has, whatever divides their thousands."""
    lacking = _digits(english)
    added = []
    for digits in _digits(other):
        if digits in lacking:
            lacking.remove(digits)
        else:
            added.append(digits)
    faults = [f"The number {digits} is missing." for digits in lacking]
    return faults + [f"The number {digits} is not in the English." for digits in added]


def _digits(text: str) -> list[str]:
    """Return the digits of each number of the text, without points, commas and spaces in it."""
    found = re.findall(r"\d+(?:[.,\u00a0\u202f ]\d+)*", text)
    return [re.sub(r"\D", "", number) for number in found]


def _in_digits(text: str, powers: dict[str, float]) -> Iterator[Values]:
    """Yield the values of each number that the text has in digits."""
    power = "|".join(sorted(powers, key=len, reverse=True))
    for match in re.finditer(SIGNED, text):
        number = float(re.sub(MINUS, "-", match[0]).replace(",", ""))
        values = {number}
        behind = text[match.end() :]
        own = re.match(rf"[\s-]*({power})", behind)
        shared = re.match(rf"(?:{BETWEEN}{NUMBER})+[\s-]*({power})", behind)
        if own:
            values = {number, number * powers[own[1]]} if own[1] in "百千" else set()
            values.add(number * powers[own[1]])
        elif shared:
            values.add(number * powers[shared[1]])
        yield frozenset(values)


def _in_english_words(text: str) -> Iterator[Values]:
    """Yield the values of the number words of an English text, alone and taken together."""
    if text == "May":
        yield frozenset({5.0})
    product = 1.0  # of the words that follow one another
    for word in re.findall(r"[a-z]+|[^\sa-z-]", text.lower()):
        if word in ENGLISH_WORDS:
            value = ENGLISH_WORDS[word]
            yield frozenset({value, 1 / value if value else 0})
            tens = product if product in range(20, 100, 10) and value < 10 else 0
            product = tens + value
            yield frozenset({product})
        elif word.removesuffix("s") in ENGLISH_POWERS:
            product *= ENGLISH_POWERS[word.removesuffix("s")]
            yield frozenset({product, product / 2})
        elif word not in ("and", "of"):
            product = 1.0


def _in_chinese_words(text: str) -> Iterator[Values]:
    """Yield the values of the numbers that a Chinese text has in characters."""
    for match in CHINESE_WORD.finditer(text):
        word = match[0]
        # 二三 are two numbers, so each character is one as well.
        for character in word:
            if character in CHINESE_DIGITS:
                yield frozenset({float(CHINESE_DIGITS[character])})
        if len(word) > 1 or word in CHINESE_TENS:
            yield frozenset({chinese_value(word)})


def chinese_value(word: str) -> float:
    """Return the value of a number in Chinese characters.

    >>> chinese_value("三十二"), chinese_value("两万五千"), chinese_value("百")
    (32.0, 25000.0, 100.0)
    """
    total = 0.0  # of the parts that end in 万 or 亿
    part = 0.0
    digit = 0.0
    for character in word:
        if character in CHINESE_DIGITS:
            digit = CHINESE_DIGITS[character]
        elif character in CHINESE_TENS:
            part += (digit or 1) * CHINESE_TENS[character]
            digit = 0.0
        else:
            total = (total + part + digit or 1) * CHINESE_POWERS[character]
            part = 0.0
            digit = 0.0
    return total + part + digit


def _unmatched(first: Sequence[Values], second: Sequence[Values]) -> tuple[list, list]:
    """Return what remains of both when each number has taken its like on the other side."""
    left = list(second)
    unmatched = []
    # Those with one value choose first, since the others may find another one.
    for values in sorted(first, key=len):
        like = next((other for other in left if _agree(values, other)), None)
        if like is None:
            unmatched.append(values)
        else:
            left.remove(like)
    return unmatched, left


def _agree(first: Values, second: Values) -> bool:
    """Whether the two may be the same number."""
    return any(math.isclose(one, other, rel_tol=1e-9) for one in first for other in second)


def _said(values: Values) -> str:
    return " or ".join(number_text(value) for value in sorted(values))
