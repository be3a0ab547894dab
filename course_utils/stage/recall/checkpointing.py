"""Questions of notebook 8: how a long run survives, and how it fits."""

from course_utils.core import accountant
from course_utils.core.say import in_words, three_digits
from course_utils.stage.recall.question import WITHIN, Asked, Mistake, Question

HOUR = 3600  # seconds
MINUTE = 60


def _interval(save_s: int, hours: float) -> Asked:
    failure_s = hours * HOUR
    minutes = accountant.interval(save_s, failure_s) / MINUTE
    return Asked(
        f"A save takes {save_s} seconds, and a run fails every {hours:g} hours on average. By "
        "Young's rule, how many minutes should lie between two saves?",
        answer=minutes,
        unit="minutes",
        derivation=f"Young's rule: √(2 × {save_s} × {failure_s:,.0f}) seconds = "
        f"{in_words(60 * minutes)} seconds, or {in_words(minutes, 'minutes')}.",
        mistakes=(
            Mistake(
                minutes / 2**0.5,
                "On average half an interval is lost, which is where the 2 under the root is from.",
            ),
            Mistake(
                minutes * MINUTE**0.5,
                "Both times have to be in the same unit before the root is taken.",
            ),
        ),
    )


def _lost(save_s: int, minutes: int, hours: int, restart_min: int) -> Asked | None:
    interval_s = minutes * MINUTE
    failure_s = hours * HOUR
    restart_s = restart_min * MINUTE
    percent = 100 * accountant.lost_share(interval_s, save_s, failure_s, restart_s)
    saves = 100 * save_s / interval_s
    redone = 100 * interval_s / (2 * failure_s)
    restarts = 100 * restart_s / failure_s
    if not 8 <= percent <= 50:
        return None
    if min(saves, redone, restarts) <= max(2, WITHIN * percent):
        return None  # a sum that leaves one of them out would count as right
    return Asked(
        f"A run saves every {minutes} minutes, which takes {save_s} seconds. It fails every "
        f"{hours} hours on average, and a restart takes {restart_min} minutes. Added up, how many "
        "percent of the time go to saves, lost work and restarts?",
        answer=percent,
        unit="percent",
        derivation=f"Saves take {saves:.1f} % ({save_s} of {interval_s:,} seconds), lost work "
        f"{redone:.1f} % (half of {minutes} minutes, every {hours} hours), and restarts "
        f"{restarts:.1f} %: {in_words(percent, 'percent')}.",
        mistakes=(
            Mistake(percent + redone, "On average, a failure comes in the middle of an interval."),
            Mistake(percent - saves, "While it saves, the run stands still, too."),
            Mistake(percent - redone, "What was computed since the last save is lost."),
        ),
    )


def _fails_every(thousands: int, gpus: int) -> Asked:
    hours = thousands * 1000 / gpus
    return Asked(
        f"A GPU fails once in {thousands * 1000:,} hours. One failure stops the whole run. How "
        f"many hours pass between two failures of a run on {gpus:,} GPUs, on average?",
        answer=hours,
        unit="hours",
        derivation=f"With {gpus:,} GPUs, failures are {gpus:,} times as frequent: "
        f"{thousands * 1000:,} / {gpus:,} = {in_words(hours, 'hours')}.",
        mistakes=(
            Mistake(thousands * 1000, "That is one GPU alone. Any of them can stop the run."),
            Mistake(hours / 24, "That is in days."),
        ),
    )


def _again(products: int, segment: int) -> Asked | None:
    percent = 100 * (2 - 2 / (products * segment)) / 6
    if percent < 5 or products * segment > 16:
        return None
    one = "one layer" if segment == 1 else f"{segment} layers"
    return Asked(
        f"Each layer of a network has {products} equal matrix products, and all layers are "
        f"recomputed in segments of {one}, with torch's early stop. How many percent more FLOPs "
        "does a step take?",
        answer=percent,
        unit="percent",
        derivation="A step has 6 FLOPs for each weight and token, and recomputing adds 2, "
        f"without the last of {products * segment} products: (2 - 2/{products * segment}) / 6 = "
        f"{in_words(percent, 'percent')}.",
        mistakes=(
            Mistake(100 / 3, "The last product of a segment is not needed, so it is left out."),
            Mistake(100, "Only the forward pass is done again, and it is a third of a step."),
        ),
    )


def _inputs(layers: int, width: int, tokens: int, whole: int) -> Asked | None:
    if whole >= layers:
        return None
    each = accountant.tensor_bytes((tokens, width), "bf16") / 1e9
    recomputed = layers - whole
    gigabytes = recomputed * each + whole * 16 * each
    if recomputed * each <= WITHIN * gigabytes:
        return None  # without these inputs, the answer would count as right
    return Asked(
        f"A GPT of {layers} layers, {width:,} wide, keeps 16 numbers for each token and unit of "
        f"width in a layer. {recomputed} layers are recomputed, each by itself. How many GB do all "
        f"layers keep at the loss, for {tokens:,} tokens in bf16?",
        answer=gigabytes,
        unit="GB",
        derivation=f"A recomputed layer keeps its input alone, {tokens:,} × {width:,} × 2 bytes, "
        f"and each other layer 16 times that: ({recomputed} + 16 × {whole}) × "
        f"{in_words(each, 'GB')} = {in_words(gigabytes, 'GB')}.",
        mistakes=(
            Mistake(whole * 16 * each, "A recomputed layer still keeps its input."),
            Mistake(16 * layers * each, "That is without recomputing any layer."),
            Mistake(layers * each, "The layers that are not recomputed keep 16 times as much."),
        ),
    )


def _segments(layers: int, segment: int, layer_mb: int, input_mb: int) -> Asked | None:
    if layers % segment or segment == layers:
        return None
    before = layers // segment - 1
    megabytes = before * input_mb + segment * layer_mb
    if (layers - segment - before) * input_mb <= WITHIN * megabytes:
        return None  # an input of each layer would count as right
    gigabytes = megabytes / 1000
    return Asked(
        f"Each of {layers} layers keeps {layer_mb:,} MB, of which its input is {input_mb} MB. They "
        f"are recomputed in segments of {segment}. How many GB are kept while the last segment is "
        "completely in memory?",
        answer=gigabytes,
        unit="GB",
        derivation=f"{before} inputs of the segments before, and {segment} whole layers: {before} "
        f"× {input_mb} + {segment} × {layer_mb:,} MB = {in_words(gigabytes, 'GB')}.",
        mistakes=(
            Mistake(
                ((layers - segment) * input_mb + segment * layer_mb) / 1000,
                "A segment keeps one input, that of its first layer.",
            ),
            Mistake(
                before * input_mb / 1000,
                "The segment that is recomputed is in memory with all that its layers keep.",
            ),
            Mistake(
                layers * layer_mb / 1000,
                "That is without recomputing.",
            ),
        ),
    )


def _file(billions: int, gigabytes_per_sec: int) -> Asked:
    gigabytes = 12 * billions
    seconds = gigabytes / gigabytes_per_sec
    return Asked(
        f"A run trains {billions} billion parameters with AdamW, all in fp32. How many seconds "
        f"does it take to write a checkpoint from which it can go on, at {gigabytes_per_sec} GB/s?",
        answer=seconds,
        unit="seconds",
        derivation="For each parameter, the weight and AdamW's two averages are saved, 12 bytes; "
        f"gradients are not. {gigabytes:,} GB / {gigabytes_per_sec} GB/s = "
        f"{three_digits(seconds)} seconds.",
        mistakes=(
            Mistake(
                seconds * 16 / 12, "Each step makes its gradients anew, so they are not saved."
            ),
            Mistake(
                seconds * 4 / 12,
                "Without the optimizer's averages, the run goes on differently.",
            ),
        ),
    )


QUESTIONS = (
    Question(
        "checkpointing.interval",
        "e803b9b4",
        _interval,
        {"save_s": (10, 20, 30, 60, 90, 120, 300), "hours": (1, 2, 3, 4, 6, 12, 24)},
    ),
    Question(
        "checkpointing.lost",
        "c8b0a1d001",
        _lost,
        {
            "save_s": (30, 60, 90, 120),
            "minutes": (10, 15, 20, 30, 45),
            "hours": (2, 3, 4, 5),
            "restart_min": (3, 5, 10, 15),
        },
    ),
    Question(
        "checkpointing.fails_every",
        "872e677b",
        _fails_every,
        {"thousands": (20, 30, 50, 80, 100), "gpus": (512, 1024, 2048, 4096, 8192, 16_384)},
    ),
    Question(
        "checkpointing.again",
        "23188ea0",
        _again,
        {"products": (1, 2, 3, 4, 6), "segment": (1, 2, 3, 4)},
    ),
    Question(
        "checkpointing.inputs",
        "4c4075ad",
        _inputs,
        {
            "layers": (12, 24, 32, 48),
            "width": (768, 1024, 2048, 4096),
            "tokens": (2048, 4096, 8192, 32_768),
            "whole": (1, 2, 4, 8),
        },
    ),
    Question(
        "checkpointing.segments",
        "c8b0a1e028",
        _segments,
        {
            "layers": (16, 24, 36, 48, 64),
            "segment": (2, 3, 4, 6, 8, 12),
            "layer_mb": (400, 600, 900, 1600),
            "input_mb": (40, 60, 100),
        },
    ),
    Question(
        "checkpointing.file",
        "c8b0a1d010",
        _file,
        {"billions": (1, 3, 7, 13, 30, 70), "gigabytes_per_sec": (1, 2, 3, 4, 5, 8, 20)},
    ),
)
