"""What may be typed as the unit of an answer, and how an answer in each unit can be written."""

from course_utils.core.say.language import template

# By the first word of the unit that is asked for, in lower case. "" is for a number without a unit,
# and for all units that are not here.
HOW = {
    "": template("Write it as 1500, 1.5, 1/3, 3e9 or 2^20."),
    "times": template("Write it as 3, 1.5, 3x or 1/3."),
    "percent": template("Write it as 30, 12.5 or 30 %."),
    "%": template("Write it as 30, 12.5 or 30 %."),
    "share": template("Write it as 0.3, 30 % or 1/3."),
    "bytes": template("Write it as 4096, 2^12, 3 kB or 5.5 GB."),
    "gb": template("Write it as 7, 1.5, 3,500 MB or 3 GiB."),
    "gib": template("Write it as 7, 1.5, 512 MiB or 3 GB."),
    "flops": template("Write it as 1500, 3e9, 2 * 10^9 or 500 million."),
    "tokens": template("Write it as 50, 3,000, 2^10 or 3 million."),
    "billions": template("Write it as 7, 0.5, 7 billion or 500 million."),
    "days": template("Write it as 30, 1.5, 2 weeks or 1 year."),
    "hours": template("Write it as 5, 1.5, 90 minutes or 2 days."),
    "minutes": template("Write it as 5, 1.5, 90 seconds or 2 hours."),
    "seconds": template("Write it as 5, 0.5, 1/3 or 2 minutes."),
    "joules": template("Write it as 150, 1.5, 1e3 or 2 kJ."),
    "elements": template("Write it as 6, 1,500 or 2^10."),
}
# Units in which half of one makes no sense, so that only whole numbers are taken.
WHOLE = ("elements",)
HOW_MANY = template("Write a whole number from 0 to {most}.")  # of a count out of several
# For each unit that is asked for, the units that people type in its place, with their sizes: a year
# is 365.25 of the days that were asked for.
_SIZES = {
    "kb": 1e3,
    "mb": 1e6,
    "gb": 1e9,
    "tb": 1e12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
    "kilobyte": 1e3,
    "megabyte": 1e6,
    "gigabyte": 1e9,
    "terabyte": 1e12,
    "kibibyte": 2**10,
    "mebibyte": 2**20,
    "gibibyte": 2**30,
    "tebibyte": 2**40,
    "千字节": 1e3,
    "兆字节": 1e6,
    "吉字节": 1e9,
    "太字节": 1e12,
}
_FLOPS = {
    "flop": 1,
    "kflop": 1e3,
    "mflop": 1e6,
    "gflop": 1e9,
    "tflop": 1e12,
    "pflop": 1e15,
    "kiloflop": 1e3,
    "megaflop": 1e6,
    "gigaflop": 1e9,
    "teraflop": 1e12,
    "petaflop": 1e15,
}
OTHER_UNITS = {
    "days": {
        "d": 1,
        "min": 1 / 1440,
        "minute": 1 / 1440,
        "h": 1 / 24,
        "hour": 1 / 24,
        "小时": 1 / 24,
        "week": 7,
        "周": 7,
        "month": 365.25 / 12,
        "月": 365.25 / 12,
        "year": 365.25,
        "年": 365.25,
    },
    "hours": {"h": 1, "min": 1 / 60, "minute": 1 / 60, "分钟": 1 / 60, "day": 24, "天": 24},
    "minutes": {
        "min": 1,
        "s": 1 / 60,
        "sec": 1 / 60,
        "second": 1 / 60,
        "秒": 1 / 60,
        "h": 60,
        "hour": 60,
        "小时": 60,
    },
    "seconds": {"s": 1, "sec": 1, "min": 60, "minute": 60, "分钟": 60, "h": 3600, "hour": 3600},
    "bytes": {"b": 1, **_SIZES},
    "gb": {"byte": 1e-9, "字节": 1e-9, **{name: size / 1e9 for name, size in _SIZES.items()}},
    "gib": {
        "byte": 2**-30,
        "字节": 2**-30,
        **{name: size / 2**30 for name, size in _SIZES.items()},
    },
    "billions": {
        "b": 1,
        "million": 1e-3,
        "trillion": 1e3,
        "万": 1e-5,
        "百万": 1e-3,
        "千万": 1e-2,
        "亿": 0.1,
        "十亿": 1,
        "百亿": 10,
        "千亿": 100,
        "万亿": 1e3,
    },
    "flops": _FLOPS,
    "joules": {"j": 1, "kj": 1e3, "kilojoule": 1e3, "焦耳": 1, "千焦": 1e3},
}
# Ways to write the sign %, from the longest on, because "percent" ends like "cent".
PERCENT = ("per cent", "percent", "pct", "%")
IN_PERCENT = ("share", "times")  # the units whose answers can also be typed in percent
# The end of a rate's unit, such as "tokens a second", and a pattern of what people write for it.
A_SECOND = " a second"
EACH_SECOND = r"(?:/|\bper\b|\ba\b)\s*(?:s|secs?|seconds?|秒)\s*$"
# What may be typed behind a number in place of the unit that is asked for, which may be none.
ENDINGS = {
    "": ("倍",),
    "percent": PERCENT,
    "%": PERCENT,
    "times": ("x", "×", "倍"),
    "days": ("天",),
    "hours": ("小时",),
    "minutes": ("分钟",),
    "seconds": ("秒",),
    "s": ("秒",),
    "ms": ("毫秒",),
    "bytes": ("字节",),
    "tokens": ("tok", "词元"),
    "steps": ("步",),
    "elements": ("元素",),
}


def first_word(unit: str) -> str:
    """Return by what these tables know the unit: "days" for "days of one GPU".

    >>> first_word("GB"), first_word("percent of the peak"), first_word("")
    ('gb', 'percent', '')
    """
    word, _, _ = unit.lower().partition(" ")
    return word
