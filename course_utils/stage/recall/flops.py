"""Questions of notebook 4: what a matrix product costs, and how long it takes."""

import math

from course_utils.core import accountant
from course_utils.core.say import in_words
from course_utils.stage.recall.question import Asked, Mistake, Question

H100_PEAK = 990  # TFLOP/s, dense, in 16 bits: NVIDIA's data sheet, to three digits


def _days(billions: int, trillions: int, gpus: int, mfu: int) -> Asked | None:
    flops = 6 * billions * 1e9 * trillions * 1e12
    days = accountant.days(flops, gpus, H100_PEAK * 1e12, mfu / 100)
    if not 3 <= days <= 400:
        return None
    return Asked(
        f"{gpus:,} GPUs, each with a peak of {H100_PEAK} TFLOP/s, train {billions} billion "
        f"parameters on {trillions} trillion tokens, with an MFU of {mfu} %. How many days does "
        "that take?",
        answer=days,
        unit="days",
        tolerance=0.1,
        derivation=f"6PN is {in_words(flops)} FLOPs, and the GPUs do {gpus:,} × {H100_PEAK} "
        f"TFLOP/s × {mfu} %. The first divided by the second is the seconds. Divided by "
        f"86,400 seconds a day: {in_words(days, 'days')}.",
        mistakes=(
            Mistake(days / 3, "2PN is the forward pass alone. With the backward pass it is 6PN."),
            Mistake(days * mfu / 100, "No run reaches its peak: divide by the MFU."),
        ),
    )


def _ridge(peak: int, terabytes: float) -> Asked | None:
    if not 100 <= peak / terabytes <= 600:
        return None  # no GPU is built so
    size = math.ceil(3 * peak / terabytes)
    return Asked(
        f"A GPU does {peak:,} TFLOP/s in bf16 and fetches {terabytes:g} TB/s. From which n on is "
        "the product of two n × n matrices in bf16 compute-bound?",
        answer=size,
        derivation=f"2n³ FLOPs for 3n² numbers of 2 bytes are n/3 FLOPs a byte, and the ridge is "
        f"at {peak:,} / {terabytes:g} of them. So n is 3 × {peak:,} / {terabytes:g}, rounded "
        f"up: {size:,}.",
        mistakes=(
            Mistake(
                peak / terabytes,
                "That is the ridge, in FLOPs a byte. An n × n product has n/3 of them.",
            ),
            Mistake(
                2 * peak / terabytes,
                "Two matrices are read, and a third one is written.",
            ),
            Mistake(1.5 * peak / terabytes, "A number in bf16 takes 2 bytes."),
        ),
    )


def _one_user(billions: int, terabytes: float, dtype: str) -> Asked:
    each = accountant.BYTES[dtype]
    rate = terabytes * 1e12 / (billions * 1e9 * each)
    half = "The 2 is for FLOPs. Each weight is read once for a token."
    if each == 1:
        half = "A weight in fp8 takes 1 byte, not 2."
    return Asked(
        f"A model of {billions} billion parameters in {dtype} writes an answer for one user. The "
        f"GPU fetches {terabytes:g} TB/s. How many tokens a second can it write at most?",
        answer=rate,
        unit="tokens a second",
        derivation=f"For each token, all weights are read: {billions} billion × {each} "
        f"{'byte' if each == 1 else 'bytes'}. {terabytes:g} TB/s / {billions * each} GB = "
        f"{in_words(rate, 'tokens a second')}.",
        mistakes=(
            Mistake(rate * each, f"A weight in {dtype} takes {each} bytes."),
            Mistake(rate / 2, half),
        ),
    )


def _mfu(billions: int, tokens_per_sec: int) -> Asked | None:
    share = 6 * billions * 1e9 * tokens_per_sec / (H100_PEAK * 1e12)
    if not 0.2 <= share <= 0.6:
        return None
    percent = 100 * share
    return Asked(
        f"A model of {billions} billion parameters trains on {tokens_per_sec:,} tokens a second on "
        f"each GPU, whose peak is {H100_PEAK} TFLOP/s. What is the MFU, in percent?",
        answer=percent,
        unit="percent",
        derivation=f"6 × {billions} billion × {tokens_per_sec:,} are "
        f"{in_words(share * H100_PEAK * 1e12, 'FLOP/s')}, of {H100_PEAK} TFLOP/s: "
        f"{in_words(percent, 'percent')}.",
        mistakes=(
            Mistake(percent / 3, "Training takes 6 FLOPs for each parameter and token, not 2."),
            Mistake(percent * 4 / 3, "What is computed a second time does not count in an MFU."),
        ),
    )


def _cache(layers: int, kv_heads: int, head_width: int, tokens: int) -> Asked:
    model = accountant.Model(layers, 4096, 32, kv_heads, head_width, 14_336, 128_256, tokens)
    gigabytes = accountant.cache_bytes(model, tokens, "bf16") / 1e9
    return Asked(
        f"A model has {layers} layers, each with {kv_heads} heads of keys and of values, "
        f"{head_width} wide. How many GB is the KV cache of a user with {tokens:,} tokens, in "
        "bf16?",
        answer=gigabytes,
        unit="GB",
        derivation=f"2 (keys and values) × {layers} × {kv_heads} × {head_width} × {tokens:,} × 2 "
        f"bytes = {in_words(gigabytes, 'GB')}.",
        mistakes=(
            Mistake(gigabytes / 2, "Both keys and values are kept, and each number takes 2 bytes."),
            Mistake(gigabytes / layers, "Each layer has keys and values of its own."),
        ),
    )


def _last_wave(tiles: int, cores: int) -> Asked | None:
    waves = math.ceil(tiles / cores)
    percent = 100 * tiles / (waves * cores)
    if percent > 95:
        return None
    return Asked(
        f"A product's result is cut into {tiles} whole tiles, and a GPU with {cores} cores (SMs) "
        "computes one on each at a time. What share of the cores' time is used, in percent?",
        answer=percent,
        unit="percent",
        derivation=f"{tiles} tiles need {waves} {'wave' if waves == 1 else 'waves'}, with room for "
        f"{waves * cores}: {tiles} / {waves * cores} = {in_words(percent, 'percent')}.",
        mistakes=(
            Mistake(
                100 * (tiles % cores) / cores,
                "That is the last wave alone. The waves before it are full.",
            ),
            Mistake(100, "The last wave takes as long as a full one."),
        ),
    )


def _attention(width: int, tokens: int) -> Asked | None:
    percent = 100 * tokens / (6 * width)
    if not 10 <= percent <= 400:
        return None
    return Asked(
        f"A layer like GPT-2's is {width:,} wide, and gets {tokens:,} tokens. Count all pairs of "
        "tokens, also those that a causal mask hides. How large are attention's own FLOPs, in "
        "percent of the FLOPs of the layer's matrices?",
        answer=percent,
        unit="percent of the matrices",
        derivation=f"A token costs 24H² in the matrices and 4SH in attention, which is S / 6H: "
        f"{tokens:,} / (6 × {width:,}) = {in_words(percent, 'percent')}.",
        mistakes=(
            Mistake(
                percent / 2,
                "Attention has two products, the scores and the values' sums, and all pairs of "
                "tokens are counted.",
            ),
            Mistake(2 * percent, "The matrices have 12H² weights, and each weight 2 FLOPs."),
        ),
    )


QUESTIONS = (
    Question(
        "flops.days",
        "flops-076",
        _days,
        {
            "billions": (7, 13, 30, 70, 123, 405),
            "trillions": (1, 2, 5, 10, 15),
            "gpus": (256, 512, 1024, 2048, 4096, 16_384),
            "mfu": (30, 35, 40, 45, 50),
        },
    ),
    Question(
        "flops.ridge",
        "flops-055",
        _ridge,
        {
            "peak": (65, 125, 312, 400, 660, 990, 1300, 2250),
            "terabytes": (0.5, 0.9, 2, 3.35, 4.8, 8),
        },
    ),
    Question(
        "flops.one_user",
        "serve-01",
        _one_user,
        {
            "billions": (7, 8, 14, 32, 70),
            "terabytes": (1, 2, 3.35, 4.8, 8),
            "dtype": ("bf16", "fp8"),
        },
    ),
    Question(
        "flops.mfu",
        "cb30b0244a",
        _mfu,
        {
            "billions": (7, 8, 13, 32, 70, 123),
            "tokens_per_sec": (400, 500, 800, 1000, 2000, 3000, 4000, 6000, 8000, 10_000),
        },
    ),
    Question(
        "flops.cache",
        "serve-02",
        _cache,
        {
            "layers": (24, 32, 48, 64, 80),
            "kv_heads": (4, 8, 16),
            "head_width": (64, 128),
            "tokens": (8192, 16_384, 32_768, 131_072),
        },
    ),
    Question(
        "flops.last_wave",
        "c90a04031",
        _last_wave,
        {"tiles": (72, 96, 112, 140, 144, 160, 196, 256, 288, 320), "cores": (108, 114, 132, 148)},
    ),
    Question(
        "flops.attention",
        "flops-086",
        _attention,
        {
            "width": (768, 1024, 2048, 4096, 5120, 8192, 12_288),
            "tokens": (2048, 4096, 8192, 16_384, 32_768, 65_536),
        },
    ),
)
