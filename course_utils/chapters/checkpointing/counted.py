"""The numbers of the account, each with its formula, in which the numbers are filled in.

A formula is written so that it can be computed: tests do that, and compare the result with the
number that the accountant's terms give.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from course_utils.chapters.checkpointing.run import Run
from course_utils.core import accountant
from course_utils.core.accountant import AT_LOSS, AT_OUTPUT, IN_LAYER, Model
from course_utils.core.say import Number, flops_text, number_text, three_digits
from course_utils.core.say import decimal_bytes_text as short
from course_utils.core.say.language import template, translated
from course_utils.core.say.wording import factor_text

# How sure a number is.
COUNTED = template("counted")
SHEET = template("by the data sheet")
ASSUMED = template("with what is assumed")
AT_MOST = template("at most")
AT_LEAST = template("at least")
ABOUT = template("about")
LARGE = 100_000  # six digits would cut what is before the point


@dataclass(frozen=True)
class Counted:
    """One number of the account.

    `text` is the number for people, and `how` says how sure it is. `formula` has the numbers filled
    in, `words` names them in their order, and `notebook` is the number of the one that teaches it.
    """

    key: str
    name: str
    number: Number
    text: str
    how: str
    formula: str
    words: str
    notebook: int


def counted(run: Run) -> list[Counted]:
    """Return all numbers of the account, in their order.

    ValueError, with a sentence, for an input that no run can have.
    """
    try:
        return [
            *_of_the_model(run),
            *_of_the_memory(run),
            *_of_the_run(run),
            *_of_serving(run),
            *_of_costs(run),
        ]
    except (OverflowError, ZeroDivisionError) as error:
        raise ValueError(
            translated(
                "A size of this model, or of this run, is too large or too small to count with."
            )
        ) from error


# The model.


def _of_the_model(run: Run) -> Iterator[Counted]:
    m = run.m
    stored = accountant.stored_parameters(m)
    yield Counted(
        "parameters",
        "parameters",
        stored,
        factor_text(stored),
        COUNTED,
        _layer_by_layer(m, accountant.stored_parameters),
        _layers_in_words(m),
        4,
    )
    if m.mixture:
        used = accountant.active_parameters(m)
        yield Counted(
            "used",
            "of these, a token uses",
            used,
            factor_text(used),
            COUNTED,
            _layer_by_layer(m, accountant.active_parameters),
            f"{_layers_in_words(m)}; of a layer's experts, those that a token goes to",
            6,
        )


def _layer_by_layer(m: Model, count: Callable[[Model], int]) -> str:
    """Return the sum of all layers and of what is around them, for a count of parameters."""
    whole = count(m)
    last_layer = whole - count(replace(m, layers=m.layers - 1))
    dense_layers = m.mixture.dense_layers if m.mixture else 0
    alike = m.layers - dense_layers
    pieces = [_product(alike, last_layer)]
    rest = whole - alike * last_layer
    if dense_layers:
        # With one layer more without experts, in place of one with them.
        mixture = replace(m.mixture, dense_layers=dense_layers + 1)
        dense_layer = last_layer + count(replace(m, mixture=mixture)) - whole
        pieces.insert(0, _product(dense_layers, dense_layer))
        rest -= dense_layers * dense_layer
    return " + ".join([*pieces, f"{rest:,}"])


def _layers_in_words(m: Model) -> str:
    around = "what is around the layers (embeddings, last norm, output)"
    if m.mixture and m.mixture.dense_layers:
        return f"layers without experts · one of them + layers with experts · one + {around}"
    return f"layers · one layer + {around}"


# The bytes on each GPU.


def _of_the_memory(run: Run) -> Iterator[Counted]:
    state = sum(run.lines[f"bytes of {part}"] for part in run.parts)
    yield Counted(
        "state",
        "state on each GPU",
        state,
        short(state),
        COUNTED,
        _state_formula(run),
        "parameters, or a GPU's share of them (rounded up) · bytes for each, part by part",
        6,
    )
    if accountant.step_is_counted(run.m):
        yield from _of_a_counted_step(run, state)
    elif accountant.kept_is_counted(run.m):
        yield _of_a_steps_loss(run)


def _state_formula(run: Run) -> str:
    """Return a product for each part of the state: what a GPU has of it, times its bytes."""
    numbers = accountant.stored_parameters(run.m)
    products = []
    for part, dtypes in run.parts.items():
        bytes_each = sum(accountant.BYTES[dtype] for dtype in dtypes)
        if not bytes_each:
            continue
        held = f"{numbers:,}"
        if run.stage >= accountant.SHARDED_FROM[part]:
            held = f"⌈{numbers:,} / {run.gpus:,}⌉"
        products.append(f"{held} · {bytes_each}")
    return " + ".join(products)


def _of_a_counted_step(run: Run, state: Number) -> Iterator[Counted]:
    """Yield what a step adds to the state at its fullest moment, and all bytes together."""
    lines = run.lines
    moment = lines["fullest moment of a step"]
    added = lines["bytes that the step adds then"]
    formula, words = _step_formula(run, moment, added)
    yield Counted(
        "step",
        f"a step adds, at {moment}",
        added,
        short(added),
        AT_MOST if run.m.mixture else COUNTED,
        formula,
        words,
        8 if moment == AT_LOSS else 5,
    )
    gathered = lines["bytes gathered then"]
    width = accountant.BYTES[run.dtype]
    yield Counted(
        "gathered",
        "gathered from the others",
        gathered,
        short(gathered),
        COUNTED,
        _product(gathered // width, width),
        "numbers that are whole on each GPU for a while · bytes for each",
        8,
    )
    rest = lines["bytes of the rest"]
    together = lines["bytes together"]
    yield Counted(
        "together",
        "together on each GPU",
        together,
        short(together),
        AT_MOST,
        f"{state:,} + {added:,} + {gathered:,} + {rest:,}",
        "state + what the step adds + what is gathered + small things, at most",
        8,
    )


def _step_formula(run: Run, moment: str, added: Number) -> tuple[str, str]:
    """Return the formula of what a step adds at that moment, and its words."""
    m = run.m
    recomputed = run.recomputed_layers
    if moment == IN_LAYER:
        recomputed = min(recomputed, m.layers - 1)  # the last layer is in memory again by then
    elif moment not in (AT_LOSS, AT_OUTPUT):
        return f"{added:,}", "a gradient of a whole matrix; no layer keeps anything by then"
    sizes = (run.batch, run.length, run.dtype)
    if m.mixture:
        kept = accountant.any_kept_bytes(m, *sizes, recomputed)
        words = "what all layers keep for the backward pass + all else, at most"
        return f"{kept:,} + {added - kept:,}", words
    kept_by_a_layer = accountant.layer_bytes(m, *sizes)
    input_bytes = accountant.tensor_bytes((run.batch, run.length, m.width), run.dtype)
    whole = m.layers - recomputed
    others = added - whole * kept_by_a_layer - recomputed * input_bytes
    pieces = []
    words = []
    if whole:
        pieces.append(_product(whole, kept_by_a_layer))
        words.append("layers · what one keeps for the backward pass")
    if recomputed:
        pieces.append(_product(recomputed, input_bytes))
        words.append("recomputed layers · the input of one")
    pieces.append(f"{others:,}")
    words.append("logits and loss" if moment == AT_LOSS else "gradients in the making")
    return " + ".join(pieces), " + ".join(words)


def _of_a_steps_loss(run: Run) -> Counted:
    """Return what a step adds at its loss, if it is not counted whether a later one is fuller."""
    kept = run.lines["bytes kept for the backward pass"]
    loss = run.lines["bytes of the loss"]
    return Counted(
        "step",
        "a step adds, at the loss",
        kept + loss,
        short(kept + loss),
        AT_LEAST,
        f"{kept:,} + {loss:,}",
        "kept for the backward pass, if experts work one after the other + logits and loss",
        8,
    )


# The run.


def _of_the_run(run: Run) -> Iterator[Counted]:
    lines = run.lines
    of_a_sequence = accountant.sequence_flops(run.m, run.length, run.recomputed_layers)
    yield Counted(
        "flops",
        "FLOPs for a token",
        of_a_sequence / run.length,
        flops_text(of_a_sequence / run.length),
        COUNTED,
        _flops_formula(run, of_a_sequence),
        _flops_in_words(run),
        4,
    )
    run_days = lines["days without saves and failures"]
    yield Counted(
        "days",
        "days of the run",
        run_days,
        three_digits(run_days),
        ASSUMED,
        f"{plain(of_a_sequence / run.length)} · {run.tokens:,.0f} / "
        f"({run.gpus:,} · {run.peak:,.0f} · {run.percent} / 100) / 86,400",
        "FLOPs for a token · tokens / (GPUs · FLOP/s of one, dense · MFU) / seconds of a day",
        4,
    )
    lost = lines["share that is lost, at most"]
    save_s = accountant.SAVE_S
    every_s = lines["seconds between two saves"]
    failure_s = accountant.GPU_DAYS_PER_FAILURE * accountant.SECONDS_PER_DAY / run.gpus
    yield Counted(
        "lost",
        "lost to saves and failures",
        lost,
        f"{three_digits(100 * lost)} %",
        ASSUMED,
        f"min(1, {save_s} / {plain(every_s)} + {plain(every_s)} / (2 · {plain(failure_s)}) + "
        f"{accountant.RESTART_S} / {plain(failure_s)})",
        "saves + half an interval for each failure + restarts, all assumed, as shares of the time",
        8,
    )


def _flops_formula(run: Run, of_a_sequence: Number) -> str:
    """Return the FLOPs of a sequence, part by part, over its tokens."""
    m = run.m
    length = run.length
    whole_layers = m.layers - m.window_layers
    pairs = whole_layers * accountant.pairs(length)
    pairs += m.window_layers * accountant.pairs(length, m.window)
    products = f"2 · {length:,} · {accountant.active_weights(m):,}"
    scores = f"{pairs:,} · {accountant.pair_flops(m):,}"
    forward = f"3 · ({products} + {scores})"
    again = of_a_sequence - 3 * accountant.active_forward_flops(m, 1, length)
    if again:
        return f"({forward} + {again:,}) / {length:,}"
    return f"{forward} / {length:,}"


def _flops_in_words(run: Run) -> str:
    words = "forward, and backward twice as much: 2 · tokens · weights + pairs of attention · each"
    if run.recomputed_layers:
        words += "; what is recomputed"
    return f"{words}; all over the tokens of a sequence"


# Serving, energy and money.


def _of_serving(run: Run) -> Iterator[Counted]:
    m = run.m
    served_in = accountant.SERVED_IN
    for_a_token = accountant.cache_bytes(m, 1, served_in)
    numbers = for_a_token // m.layers // accountant.BYTES[served_in]
    yield Counted(
        "cache",
        "cache of a token",
        for_a_token,
        short(for_a_token),
        COUNTED,
        f"{m.layers} · {numbers:,} · {accountant.BYTES[served_in]}",
        "layers · what attention keeps of a token (keys and values, or the latent) · bytes of bf16",
        4,
    )
    read = accountant.decode_bytes(m, run.users, run.cached_length, served_in)
    flops = accountant.decode_flops(m, run.users, run.cached_length)
    a_second = run.serving_lines["tokens a second for each user"]
    bandwidth = run.sheet.bytes_per_sec
    yield Counted(
        "decoding",
        "tokens a second, each user",
        a_second,
        three_digits(a_second),
        ABOUT if m.mixture and run.users > 1 else AT_MOST,
        f"1 / max({plain(read)} / ({run.serving:,} · {bandwidth:,.0f}), "
        f"{flops:,} / ({run.serving:,} · {run.serving_peak:,.0f}))",
        "the slower one of: bytes read / bandwidth, FLOPs / peak, of all GPUs that serve it",
        4,
    )


def _of_costs(run: Run) -> Iterator[Counted]:
    run_days = run.lines["days without saves and failures"]
    costs = accountant.cost_lines(run_days, run.gpus, run.watts, accountant.PUE, run.price)
    hours = costs["GPU hours"]
    yield Counted(
        "hours",
        "GPU hours",
        hours,
        factor_text(hours),
        ASSUMED,
        f"{plain(run_days)} · 24 · {run.gpus:,}",
        "days · hours of a day · GPUs, without saves and failures",
        4,
    )
    energy = costs["kilowatt-hours"]
    yield Counted(
        "energy",
        "energy",
        energy,
        f"{factor_text(energy)} kWh",
        ASSUMED,
        f"{plain(hours)} · {run.watts} / 1,000 · {accountant.PUE}",
        "GPU hours · kilowatts of a GPU · watts of the data centre for each watt of its GPUs",
        8,
    )
    money = costs["dollars"]
    yield Counted(
        "money",
        "money",
        money,
        f"${factor_text(money)}",
        ASSUMED,
        f"{plain(hours)} · {run.price:g}",
        "GPU hours · dollars for one (assumed)",
        8,
    )


def plain(n: Number) -> str:
    """Return a number as it stands in a formula: with six digits, or with one decimal if larger."""
    is_whole = n == int(n)
    if is_whole or n < LARGE:
        return number_text(n)
    return f"{n:,.1f}"


def _product(times: int, of: int) -> str:
    return f"{times:,} · {of:,}"
