"""Answers to the exercises of notebook 08."""

import math
import os
import uuid
from functools import partial
from os import fsync, replace
from pathlib import Path

import numpy as np
import torch

from course_utils.chapters.checkpointing import check, file_check
from course_utils.core import accountant
from tests.engine.tried import Check, Tried


def overwrite(path, pieces):
    with open(path, "wb") as file:
        file.writelines(pieces)


def write(
    path,
    pieces,
    *,
    beside="beside",
    flush=True,
    sync="fsync",
    rename=Path.replace,
    clear=True,
    swallow=False,
):
    """Right, or wrong in one way, by one of the options."""
    beside = path.parent.joinpath(beside).resolve()
    try:
        with open(beside, "wb") as file:
            file.writelines(pieces)
            if flush:
                file.flush()
            if sync:
                getattr(os, sync)(file.fileno())
        rename(beside, path)
    except BaseException:
        if clear:
            beside.unlink()
        if not swallow:
            raise


def gone_before_it_is_there(new, old):
    old.unlink(missing_ok=True)
    new.rename(old)


def joined_first(path, pieces):
    """An error can come before there is a file to remove, and then `unlink` hides it."""
    beside = path.with_name("beside")
    try:
        joined = b"".join(pieces)
        with open(beside, "wb") as file:
            file.write(joined)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink()
        raise


def in_memory_first(path, pieces):
    """Nothing is written before all pieces are there, but then the old file is overwritten."""
    overwrite(path, [b"".join(pieces)])


def joined_before_the_try(path, pieces):
    """Right as long as only a piece fails: what comes after it has no `try` at all."""
    joined = b"".join(pieces)
    beside = path.with_name("beside")
    with open(beside, "wb") as file:
        file.write(joined)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def by_imported_functions(path, pieces):
    """Another right way: the functions of `os` are imported by their names."""
    beside = path.with_name("beside")
    try:
        with open(beside, "wb") as file:
            file.writelines(pieces)
            file.flush()
            fsync(file.fileno())
        replace(beside, path)
    except Exception:
        beside.unlink()
        raise


def with_path_methods(path, pieces, errors=Exception):
    """Another right way: a file with a name of its own, renamed by the path's own method."""
    beside = path.parent / "0.part"
    try:
        with beside.open("wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file)
        beside.replace(path)
    except errors:
        beside.unlink()
        raise


def in_reverse(path, pieces):
    write(path, list(pieces)[::-1])


def all_at_once(path, pieces):
    path.write_bytes(pieces)


def interval_by_a_power(save_s, failure_s):
    return (2 * failure_s * save_s) ** 0.5


def layers_alone(m, batch, sequence, dtype, recomputed):
    """What the layers keep, without the last normalisation and the loss."""
    layer = accountant.layer_bytes(m, batch, sequence, dtype)
    hidden = accountant.tensor_bytes((batch, sequence, m.width), dtype)
    return (m.layers - recomputed) * layer + recomputed * hidden


def all_lost_work(interval_s, save_s, failure_s, restart_s):
    return save_s / interval_s + 3 * interval_s / (2 * failure_s) + restart_s / failure_s


def days_by_torch(gpu_days, gpus, failure_days, save_s, restart_s):
    failure_s = torch.tensor(failure_days, dtype=torch.float64) * 24 * 60 * 60 / gpus
    lost = torch.sqrt(2 * save_s / failure_s) + restart_s / failure_s
    return gpu_days / gpus / (1 - lost) if lost < 1 else float("inf")


def days_by_accountant(gpu_days, gpus, failure_days, save_s, restart_s):
    failure_s = 86_400 * failure_days / gpus
    every_s = accountant.interval(save_s, failure_s)
    lost = accountant.lost_share(every_s, save_s, failure_s, restart_s)
    return np.float64(gpu_days / gpus) / (1 - lost) if lost < 1 else np.inf


def days_by_a_loop(gpu_days, gpus, failure_days, save_s, restart_s):
    """Time that is lost while lost time is made up for is lost again, and so on."""
    failure_s = 86_400 * failure_days / gpus
    lost = (2 * save_s / failure_s) ** 0.5 + restart_s / failure_s
    days = 0.0
    more = gpu_days / gpus
    while more > 1e-9:
        days += more
        more *= lost
        if days > 1e9:
            return math.inf
    return days


def days_without_a_root(gpu_days, gpus, failure_days, save_s, restart_s):
    return gpu_days / gpus / (1 - 2 * save_s * gpus / failure_days / 86_400)


def days_in_hours(*run):
    return 24 * days_by_accountant(*run)


def days_with_gpus_that_fail_together(gpu_days, gpus, failure_days, save_s, restart_s):
    """Each GPU is counted as if its failures lost time of its own alone, one after the other."""
    alone = days_by_accountant(gpu_days, 1, failure_days, save_s, restart_s)
    return alone / gpus + 1


def background_by_seconds(copy_s, write_s, interval_s, failure_s, restart_s):
    moments = torch.arange(0.5, 1e5) / 1e5 * interval_s
    redone = torch.where(moments < write_s, moments + interval_s, moments).mean()
    return copy_s / interval_s + (redone + restart_s) / failure_s


def background_in_two_parts(copy_s, write_s, interval_s, failure_s, restart_s):
    """Failures during the write, and failures after it, each with its own mean."""
    early = write_s / interval_s
    redone = early * (interval_s + write_s / 2) + (1 - early) * (write_s + interval_s) / 2
    return np.float64(copy_s) / interval_s + redone / failure_s + restart_s / failure_s


def background_written_again(copy_s, write_s, interval_s, failure_s, restart_s):
    redone = interval_s / 2 + 2 * write_s
    return copy_s / interval_s + (redone + restart_s) / failure_s


def background_never_stops(copy_s, write_s, interval_s, failure_s, restart_s):
    return (interval_s / 2 + restart_s) / failure_s


def background_in_percent(*run):
    return 100 * background_in_two_parts(*run)


def ratio_in_fp32(products, segment):
    return torch.tensor(4 / 3 - 1 / (3 * products * segment))


def ratio_by_a_loop(products, segment):
    done = 0
    for layer in range(segment):
        for product in range(products):
            is_last = layer == segment - 1 and product == products - 1
            done += 2 + 4 + (0 if is_last else 2)
    return done / (6 * products * segment)


def ratio_without_the_last_two(products, segment):
    return (8 - 4 / (products * segment)) / 6


def ratio_of_the_forward_pass(products, segment):
    return 2 - 1 / (products * segment)


def ratio_of_a_cheap_backward_pass(products, segment):
    return (4 + 2 - 2 / (products * segment)) / 4


def _peak(layers, its_input, layer, s):
    lengths = [min(s, layers - begin) for begin in range(0, layers, s)]
    return max(n * its_input + length * layer for n, length in enumerate(lengths))


def segment_by_numpy(layers, its_input, layer):
    return np.argmin([_peak(layers, its_input, layer, s) for s in range(1, layers + 1)]) + 1


def segment_by_a_loop(layers, its_input, layer):
    best = float(layers)
    for s in range(layers, 0, -1):
        if _peak(layers, its_input, layer, s) <= _peak(layers, its_input, layer, int(best)):
            best = float(s)
    return best


def segment_counted_from_0(layers, its_input, layer):
    return segment_by_numpy(layers, its_input, layer) - 1


def segments_in_number(layers, its_input, layer):
    """How many segments there are, and not how long each is."""
    return math.ceil(layers / segment_by_numpy(layers, its_input, layer))


def segment_of_an_empty_list(layers, its_input, layer):
    return [][1]


def reads_by_slices(rows, saved_by, loaded_by, rank):
    """Overlaps of ranges, with the sizes rounded up by integers alone."""
    size = (rows + saved_by - 1) // saved_by
    mine = range(rows)[rank * -(-rows // loaded_by) : (rank + 1) * -(-rows // loaded_by)]
    reads = {}
    for row in mine:
        file, place = divmod(row, size)
        begin, _ = reads.get(file, (place, None))
        reads[file] = (begin, place + 1)
    return reads


def reads_by_torch(rows, saved_by, loaded_by, rank):
    """The parts are those that torch.chunk gives, and the ends are lists of tensors."""
    chunks = torch.arange(rows).chunk(loaded_by)
    reads = {}
    for n, file in enumerate(torch.arange(rows).chunk(saved_by)):
        if rank < len(chunks):
            places = torch.isin(file, chunks[rank]).nonzero().flatten()
            if len(places):
                reads[n] = [places[0], places[-1] + 1]
    return reads


def reads_as_a_list(*case):
    return list(reads_by_slices(*case).values())


def reads_with_one_number_too_far(*case):
    return {n + 1: ends for n, ends in reads_by_slices(*case).items()}


def reads_of_the_saving_gpu(rows, saved_by, loaded_by, rank):
    return reads_by_slices(rows, loaded_by, saved_by, min(rank, saved_by - 1))


def reads_of_even_parts(rows, saved_by, loaded_by, rank):
    """The parts differ by one row at most, as np.array_split makes them."""
    mine = np.array_split(np.arange(rows), loaded_by)[rank]
    reads = {}
    for n, file in enumerate(np.array_split(np.arange(rows), saved_by)):
        places = np.flatnonzero(np.isin(file, mine))
        if places.size:
            reads[n] = (int(places[0]), int(places[-1]) + 1)
    return reads


def sent_by_accountant(numbers, weight_bytes, gradient_bytes, gpus, stage):
    return accountant.data_parallel_bytes(numbers, weight_bytes, gradient_bytes, gpus, stage)


def sent_by_torch(numbers, weight_bytes, gradient_bytes, gpus, stage):
    """All pieces but one are chunks that are passed on, for each exchange of the stage."""
    once = torch.tensor(numbers, dtype=torch.float64).div(gpus) * (gpus - 1)
    weights = [0, 1, 1, 2][stage]
    gradients = [2, 1, 1, 1][stage]
    return once * (weights * weight_bytes + gradients * gradient_bytes)


def gathered_by_accountant(layers, tokens, key_numbers, number_bytes, gpus):
    """One head that is as wide as all together gathers the same."""
    sizes = {"width": 1, "heads": 1, "kv_heads": 1, "inner": 1, "vocabulary": 1, "context": tokens}
    m = accountant.Model(layers=layers, head_width=key_numbers, **sizes)
    dtype = {2: "bf16", 4: "fp32"}[number_bytes]
    return accountant.context_parallel_bytes(m, 1, tokens, dtype, gpus)


def gathered_piece_by_piece(layers, tokens, key_numbers, number_bytes, gpus):
    """Six pieces a layer go on in each round: of keys, of values, and of the gradients of both."""
    piece = tokens // gpus * key_numbers * number_bytes
    return sum(6 * piece for _layer in range(layers) for _round in range(1, gpus))


def gathered_for_the_forward_pass(layers, tokens, key_numbers, number_bytes, gpus):
    return 2 * layers * tokens * key_numbers * number_bytes * (gpus - 1) // gpus


def gathered_by_all_queries(layers, tokens, key_numbers, number_bytes, gpus):
    return 4 * gathered_by_accountant(layers, tokens, key_numbers, number_bytes, gpus)


def sent_one_round_too_many(numbers, weight_bytes, gradient_bytes, gpus, stage):
    return (
        sent_by_accountant(numbers, weight_bytes, gradient_bytes, gpus, stage) * gpus / (gpus - 1)
    )


def sent_both_ways(*case):
    return 2 * sent_by_accountant(*case)


def sent_in_bits(*case):
    return 8 * sent_by_accountant(*case) + 1


def parts_of_step_bytes(m, batch, sequence, dtype, recomputed):
    """What a layer keeps whole, an input, and the loss."""
    layer = accountant.layer_bytes(m, batch, sequence, dtype)
    one_input = accountant.tensor_bytes((batch, sequence, m.width), dtype)
    return layer, one_input, 12 * batch * sequence * m.vocabulary


def loss_still_open(m, batch, sequence, dtype, recomputed):
    layer, one_input, _ = parts_of_step_bytes(m, batch, sequence, dtype, recomputed)
    return (m.layers - recomputed) * layer + (recomputed + 2) * one_input + ...


def logits_of_one_sequence(m, batch, sequence, dtype, recomputed):
    layer, one_input, loss = parts_of_step_bytes(m, batch, sequence, dtype, recomputed)
    return (m.layers - recomputed) * layer + (recomputed + 2) * one_input + loss // batch


def kept_and_recomputed_exchanged(m, batch, sequence, dtype, recomputed):
    layer, one_input, loss = parts_of_step_bytes(m, batch, sequence, dtype, recomputed)
    return recomputed * layer + (m.layers - recomputed + 2) * one_input + loss


def bytes_with(m, batch, sequence, dtype, recomputed, *, whole=None, norm=None, loss=None):
    """Wrong in one of the parts, of which each takes the case."""
    case = (m, batch, sequence, dtype, recomputed)
    layer, one_input, right_loss = parts_of_step_bytes(*case)
    whole_layers = whole(*case) * layer if whole else (m.layers - recomputed) * layer
    last_norm = norm(*case) if norm else 2 * one_input
    return whole_layers + recomputed * one_input + last_norm + (loss(*case) if loss else right_loss)


def norm_of_width(m, *_):
    return 2 * m.width


def norm_in_numbers(m, batch, sequence, *_):
    return 2 * batch * sequence * m.width


def loss_without_batch(m, batch, sequence, *_):
    return 12 * sequence * m.vocabulary


def lost_with(interval_s, save_s, failure_s, restart_s, *, saves=None, work=None, restarts=None):
    """Wrong in one of the parts, of which each takes the case."""
    case = (interval_s, save_s, failure_s, restart_s)
    share = saves(*case) if saves else save_s / interval_s
    share += work(*case) if work else interval_s / (2 * failure_s)
    return share + (restarts(*case) if restarts else restart_s / failure_s)


def interval_by_a_bare_name(save_s, failure_s):
    return sqrt(2 * save_s * failure_s)  # noqa: F821  it is not imported


def parts_of_step_flops(m, batch, sequence):
    """The FLOPs of the forward pass, of a layer in it, and of the layer's last product."""
    forward = accountant.forward_flops(m, batch, sequence)
    output = 2 * batch * sequence * m.width * m.vocabulary
    return forward, (forward - output) // m.layers, 2 * batch * sequence * m.inner * m.width


def flops_without_brackets(m, batch, sequence, recomputed):
    forward, layer, down = parts_of_step_flops(m, batch, sequence)
    return 3 * forward + recomputed * layer - down


def flops_of_two_passes(m, batch, sequence, recomputed):
    forward, layer, down = parts_of_step_flops(m, batch, sequence)
    return 2 * forward + recomputed * (layer - down)


def flops_without_a_two(m, batch, sequence, recomputed):
    forward, layer, down = parts_of_step_flops(m, batch, sequence)
    return 3 * forward + recomputed * (layer - down // 2)


def restart_after_each_save(interval_s, save_s, failure_s, restart_s):
    return (save_s + restart_s) / interval_s + interval_s / (2 * failure_s)


def lost_without_brackets(interval_s, save_s, failure_s, restart_s):
    return save_s / interval_s + interval_s / 2 * failure_s + restart_s / failure_s


def lost_in_percent(interval_s, save_s, failure_s, restart_s):
    return 100 * accountant.lost_share(interval_s, save_s, failure_s, restart_s)


def lost_rounded(interval_s, save_s, failure_s, restart_s):
    return round(accountant.lost_share(interval_s, save_s, failure_s, restart_s), 2)


def interval_without_brackets(save_s, failure_s):
    return (2 * save_s * failure_s) ** 1 / 2


TRIED: dict[Check, Tried] = {
    check.step_bytes: Tried(
        wrong=(
            (partial(bytes_with, norm=norm_of_width), "each as large as `hidden`."),
            (partial(bytes_with, norm=norm_in_numbers), "two tensors are counted in numbers."),
            (
                partial(bytes_with, whole=lambda m, b, s, dtype, recomputed: recomputed),
                "`recomputed` says how many layers run again",
            ),
            (partial(bytes_with, loss=loss_without_batch), "Each sequence of the batch has logits"),
            (partial(bytes_with, loss=lambda m, *_: 12 * m.vocabulary), "two factors are missing"),
            (partial(bytes_with, loss=lambda m, b, s, *_: 12 * b * s), "for each entry of the"),
            (lambda *case: bytes_with(*case) / 1e9, "That is in MB or GB."),
            (layers_alone, "inputs of recomputed layers ✓, last normalisation and loss left out: "),
        ),
    ),
    check.lost_share: Tried(
        wrong=(
            (all_lost_work, "Saves ✓, restarts ✓, lost work counted 3 times: 0.072 too much."),
            (
                partial(lost_with, restarts=lambda tau, save_s, m, restart_s: restart_s),
                "A restart's seconds are no share yet: divide them by M",
            ),
            (partial(lost_with, work=lambda tau, *_: tau / 2), "Half of τ is in seconds"),
            (partial(lost_with, saves=lambda tau, save_s, *_: save_s), "A save's seconds are no"),
            (partial(lost_with, saves=lambda tau, save_s, *_: tau / save_s), "upside down"),
            (partial(lost_with, work=lambda tau, save_s, m, _: 2 * m / tau), "upside down"),
        ),
    ),
    check.interval: Tried(
        right=(interval_by_a_power,),
        wrong=(
            (interval_without_brackets, "put 1 / 2 in brackets"),
            (interval_by_a_bare_name, "import math, and write math.sqrt."),
        ),
    ),
    check.days_with_failures: Tried(
        right=(days_by_torch, days_by_accountant, days_by_a_loop),
        wrong=(
            (days_without_a_root, "expected 10.4 days"),
            (days_in_hours, "expected 10.4 days"),
            (days_with_gpus_that_fail_together, "expected 10.4 days"),
        ),
    ),
    check.lost_in_background: Tried(
        right=(background_by_seconds, background_in_two_parts),
        wrong=(
            (background_written_again, "unfinished writes counted twice"),
            (background_never_stops, "copies and unfinished writes left out"),
            (background_in_percent, "instead of"),
        ),
    ),
    check.flops_ratio: Tried(
        right=(ratio_in_fp32, ratio_by_a_loop),
        wrong=(
            (ratio_without_the_last_two, "expected"),
            (ratio_of_the_forward_pass, "expected"),
            (ratio_of_a_cheap_backward_pass, "expected"),
        ),
    ),
    check.best_segment: Tried(
        right=(segment_by_numpy, segment_by_a_loop),
        wrong=(
            (segment_counted_from_0, "expected"),
            (segments_in_number, "expected"),
            (segment_of_an_empty_list, "IndexError"),
        ),
    ),
    check.rows_to_read: Tried(
        right=(reads_by_slices, reads_by_torch),
        wrong=(
            (reads_as_a_list, "expected"),
            (reads_with_one_number_too_far, "expected"),
            (reads_of_the_saving_gpu, "expected"),
            (reads_of_even_parts, "1 ✓; 2: (0, 1) instead of (0, 2)"),
        ),
    ),
    check.data_parallel_bytes: Tried(
        right=(sent_by_accountant, sent_by_torch),
        wrong=(
            (sent_one_round_too_many, "A GPU need not send its own last piece"),
            (sent_both_ways, "expected 126 bytes"),
            (sent_in_bits, "expected 126 bytes"),
        ),
    ),
    check.context_parallel_bytes: Tried(
        right=(gathered_by_accountant, gathered_piece_by_piece),
        wrong=(
            (gathered_for_the_forward_pass, "That is the forward pass alone."),
            (gathered_by_all_queries, "expected"),
        ),
    ),
    check.write_whole: Tried(
        right=(
            with_path_methods,
            by_imported_functions,
            partial(write, sync="fdatasync"),
            file_check.ours,
        ),
        wrong=(
            (overwrite, "neither all of the old"),
            (partial(write, rename=gone_before_it_is_there), "neither all of the old"),
            (partial(write, beside=f"../{uuid.uuid4()}"), "write in the same folder"),
            (partial(write, flush=False), "call file.flush() and then os.fsync"),
            (in_memory_first, "it writes into the file itself"),
            (partial(write, sync=None), "os.fsync(file.fileno())."),
            (joined_before_the_try, "after an error (OSError) beside is left beside"),
            (
                partial(with_path_methods, errors=OSError),
                "after an error (MemoryError) 0.part is left beside",
            ),
            (partial(write, clear=False), "is left beside"),
            (partial(write, swallow=True), "raise the error again"),
            (joined_first, "use unlink(missing_ok=True)"),
            (in_reverse, "b'contentsnew the ', and should hold"),
            (all_at_once, "TypeError"),
        ),
    ),
}
