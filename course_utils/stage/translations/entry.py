"""What is wrong with a translation: code, formulas, links, anchors, numbers or marks that differ.

Nothing here knows whether a sentence is good or true. It finds what a computer can know.
"""

import re
from collections import Counter

from course_utils.stage.translations.numbers import digits_disagree, disagreement

CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
# What has to be the same in both, as often, in any order.
SAME = {
    "formula": re.compile(r"\$\$.+?\$\$|(?<![\\$\w])\$[^$\n]+\$(?!\d)", re.DOTALL),
    "link": re.compile(r"\]\(([^)]*)\)"),
    "tag": re.compile(r"</?[A-Za-z][^<>]*>"),
    "placeholder": re.compile(
        r"\{\{.*?\}\}|\{%.*?%\}|(?<!\{)\{\w*\}|%\(\w+\)[sd]|%[sd]\b|\$[a-z]\w+", re.DOTALL
    ),
}
EMPHASIS = re.compile(r"\*\*|(?<![\s*])\*(?![\s*])|(?<!\*)\*(?![\s*])|(?<![\s*])\*(?!\*)")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
PUNCTUATION = re.compile(r"[^\w\s]")
ENGLISH_WORDS = re.compile(r"\b[a-z]{2,}\b")
FEW = 3  # a text of fewer English words may stay as it is: names, units
# Chinese has 0.3 to 0.55 characters for one of an English text that is so long.
LONG = 100
SHORTEST = 0.22
LONGEST = 0.9
NOT_CODE = "\u2022"  # stands in place of code where emphasis is looked at: a mark, as a backtick is


def faults(english: str, translation: str, language: str) -> list[str]:
    """Return what is wrong with the translation, as sentences; nothing if all is well.

    >>> faults("Use `view`.", "使用 `reshape`。", "zh_CN")
    ['The code `view` is missing.', 'The code `reshape` is not in the English.']
    """
    found = _code_differs(english, translation)
    without_code = CODE.sub("", english)
    translated_without_code = CODE.sub("", translation)
    for name, pattern in SAME.items():
        here = Counter(pattern.findall(without_code))
        there = Counter(pattern.findall(translated_without_code))
        found += _differ(name, here, there)
    found += _lines_differ(english, translation)
    is_chinese = language.startswith("zh")
    compare = disagreement if is_chinese else digits_disagree
    found += compare(_bare(english), _bare(translation))
    if is_chinese:
        found += _is_no_chinese(english, translation)
        found += _too_short_or_long(_bare(english), _bare(translation))
    # Advice on code has stars that are no marks, as in beta**t, and is not read as Markdown.
    if not _marks_not_read(english):
        found += _marks_not_read(translation)
    return found


def _code_differs(english: str, translation: str) -> list[str]:
    here = Counter(code for _, code in CODE.findall(english))
    there = Counter(code for _, code in CODE.findall(translation))
    return _differ(
        "code",
        Counter({f"`{code}`": count for code, count in here.items()}),
        Counter({f"`{code}`": count for code, count in there.items()}),
    )


def _differ(name: str, here: Counter[str], there: Counter[str]) -> list[str]:
    """Return a sentence for each thing that only one of the two has, or has more often."""
    found = [f"The {name} {thing} is missing." for thing in (here - there).elements()]
    return found + [
        f"The {name} {thing} is not in the English." for thing in (there - here).elements()
    ]


def _bare(text: str) -> str:
    """Return the text without code, formulas, targets of links, tags and placeholders."""
    text = CODE.sub(" ", text)
    text = SAME["formula"].sub(" ", text)
    text = re.sub(r"\]\([^)]*\)", "] ", text)
    text = SAME["tag"].sub(" ", text)
    return SAME["placeholder"].sub(" ", text)


def _lines_differ(english: str, translation: str) -> list[str]:
    """Return what would break the text around the unit: lines, the columns of a row, marks."""
    found = []
    if english.count("\n") < translation.count("\n"):
        found.append("It has more lines than the English.")
    if translation != translation.strip():
        found.append("It has blank space at an end.")
    if english.startswith("|") and _columns(english) != _columns(translation):
        found.append("Its row has another number of columns.")
    for mark in ("#", "- ", "> ", "* ", "```"):
        if translation.startswith(mark) and not english.startswith(mark):
            found.append(f"It begins with {mark.strip()}, which Markdown takes for a mark.")
    return found


def _columns(row: str) -> int:
    return len(re.findall(r"(?<!\\)\|", CODE.sub("", row)))


def _is_no_chinese(english: str, translation: str) -> list[str]:
    """Return a sentence if a text of several words has no Chinese character."""
    words = ENGLISH_WORDS.findall(_bare(english))
    if len(words) >= FEW and not CHINESE.search(translation):
        return ["It is not in Chinese."]
    return []


def _too_short_or_long(english: str, translation: str) -> list[str]:
    """Return a sentence if so little, or so much, is there that some of it cannot be right."""
    share = len(translation) / max(1, len(english))
    if len(english) < LONG or SHORTEST < share < LONGEST:
        return []
    what = "left out" if share <= SHORTEST else "added"
    return [f"It has {share:.2f} characters for one of the English: is a sentence {what}?"]


def _marks_not_read(translation: str) -> list[str]:
    """Return the marks of emphasis that Markdown would show as stars instead of reading them.

    A closing mark behind punctuation needs a space or punctuation behind it, and an opening mark
    before punctuation needs one before it. Chinese has no spaces between words, so this is easily
    overlooked: **（中文）**是 shows its stars.
    """
    plain = re.sub(r"\\\*", "", CODE.sub(NOT_CODE, translation))
    found = []
    for mark in (r"\*\*", r"(?<!\*)\*(?!\*)"):
        places = [match.span() for match in re.finditer(mark, plain)]
        spaced = [place for place in places if _is_product(plain, *place)]
        marks = [place for place in places if place not in spaced]
        if len(marks) % 2:
            found.append("A mark of emphasis has no partner.")
            continue
        for at, (begin, end) in enumerate(marks):
            if not _is_read(plain, begin, end, is_opening=at % 2 == 0):
                around = plain[max(0, begin - 4) : end + 4]
                found.append(f"Markdown does not read the stars in “{around}”: put a space there.")
    return found


def _is_product(text: str, begin: int, end: int) -> bool:
    """Whether a star has blank space on both sides, as in 2 * 3."""
    around = text[max(0, begin - 1) : begin] + text[end : end + 1]
    return len(around) == 2 and around.isspace()


def _is_read(text: str, begin: int, end: int, *, is_opening: bool) -> bool:
    """Whether CommonMark reads a mark of emphasis as an opening or as a closing one."""
    before = text[begin - 1] if begin else " "
    behind = text[end] if end < len(text) else " "
    outside, inside = (before, behind) if is_opening else (behind, before)
    if inside.isspace():
        return False
    is_mark_inside = bool(PUNCTUATION.match(inside))
    return not is_mark_inside or outside.isspace() or bool(PUNCTUATION.match(outside))
