"""The exercises of notebooks 07 and 08: wrong answers fail with advice, and right ones pass however they are written."""

import math
import os
import shutil
import tempfile
from pathlib import Path

import pytest
import torch

from course_utils import floats, predict
from course_utils.checks import checkpointing, mixed_precision

WRONG_VALUES = [
    (mixed_precision.recipe_bytes, 12, "fp8 copy takes a byte"),
    (mixed_precision.recipe_bytes, 17, "averages are bf16 here"),
    (mixed_precision.recipe_bytes, 11, "two averages"),
    (mixed_precision.recipe_bytes, 16, "Add up what this one keeps"),
    (mixed_precision.recipe_bytes, None, "plain number"),
    (mixed_precision.recipe_bytes, math.nan, "is not it"),
    (mixed_precision.recipe_bytes, "13 bytes", "plain number"),
    (checkpointing.checkpoint_bytes, 16 * 8e9, "Gradients are made anew"),
    (checkpointing.checkpoint_bytes, 14 * 8e9, "can be had from the master"),
    (checkpointing.checkpoint_bytes, 2 * 8e9, "the model in bf16"),
    (checkpointing.checkpoint_bytes, 8 * 8e9, "The master is needed too"),
    (checkpointing.checkpoint_bytes, 96, "In bytes"),
    (checkpointing.checkpoint_bytes, 12, "there are 8 billion"),
    (checkpointing.checkpoint_bytes, None, "plain number"),
    (checkpointing.checkpoint_bytes, math.nan, "is not it"),
    (checkpointing.checkpoint_bytes, [96e9], "is not it"),
]


@pytest.mark.parametrize(("judge", "answer", "advice"), WRONG_VALUES)
def test_a_wrong_value_gets_advice(judge, answer, advice):
    verdict = judge(answer)
    assert verdict.status == "not yet"
    assert advice in verdict.words


def spacing(weight):
    return floats.spacing(weight, "bf16")


def grown(scale, good, finite, interval, *, at=1, keep=False):
    if not finite:
        return scale / 2, good if keep else 0
    return (2 * scale, 0) if good + at == interval else (scale, good + 1)


def by_chance(x, generator, *, bits=2**16, dtype=torch.bfloat16):
    noise = torch.randint(bits, x.shape, dtype=torch.int32, generator=generator)
    return (x.view(torch.int32) + noise & ~0xFFFF).view(torch.float32).to(dtype)


def with_an_int64(x, generator):
    noise = torch.randint(2**16, x.shape, generator=generator)
    return ((x.view(torch.int32) + noise) & ~0xFFFF).view(torch.float32).bfloat16()


def half_up_half_down(x, generator):
    """One of the neighbours, each as often as the other."""
    down = (x.view(torch.int32) & ~0xFFFF).view(torch.float32)
    up = ((x.view(torch.int32) & ~0xFFFF) + 0x10000).view(torch.float32)
    return torch.where(torch.rand(x.shape, generator=generator) < 0.5, down, up).bfloat16()


def with_noise(x, generator):
    return (x + (torch.rand(x.shape, generator=generator) - 0.5) * x.abs() * 2**-5).bfloat16()


def overwrite(path, pieces):
    with open(path, "wb") as file:
        file.writelines(pieces)


def beside_and_rename(
    path, pieces, *, flush=True, clear=True, rename=os.replace, swallow=False, sync="fsync"
):
    beside = path.with_name("beside")
    try:
        with open(beside, "wb") as file:
            file.writelines(pieces)
            file.flush()
            if flush:
                getattr(os, sync)(file.fileno())
        rename(beside, path)
    except BaseException:
        if clear:
            beside.unlink()
        if not swallow:
            raise


def gone_before_it_is_there(path, pieces):
    beside_and_rename(path, pieces, rename=lambda new, old: (old.unlink(missing_ok=True), new.rename(old)))


def by_way_of_another_folder(path, pieces):
    with tempfile.TemporaryDirectory() as elsewhere:
        beside = Path(elsewhere) / "new"
        with open(beside, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        shutil.move(beside, path)


def flushed_to_nowhere(path, pieces):
    """What Python has not handed to the system yet, the system cannot hand to the disk."""
    beside = path.with_name("beside")
    try:
        with open(beside, "wb") as file:
            file.writelines(pieces)
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        beside.unlink()
        raise


def in_memory_first(path, pieces):
    """Nothing is written before all is there, and then in place."""
    whole = b"".join(pieces)
    with open(path, "wb") as file:
        file.write(whole)


def peak(layers, inputs, block, segment):
    lengths = [min(segment, layers - begin) for begin in range(0, layers, segment)]
    return max(number * inputs + length * block for number, length in enumerate(lengths))


def young(save_s, machines, days, *, seconds=86_400, twice=2):
    return math.sqrt(twice * save_s * days * seconds / machines)


WRONG_FUNCTIONS = [
    (mixed_precision.moves, lambda w, u: u > 2**-8, "Steps grow with the weight"),
    (mixed_precision.moves, lambda w, u: u > w * 2**-8, "does not grow with the weight itself"),
    (mixed_precision.moves, lambda w, u: u > spacing(w) / 4, "half of it 2^-8"),
    (mixed_precision.moves, lambda w, u: u >= spacing(w), "Half a step is enough"),
    (mixed_precision.moves, lambda w, u: u > spacing(w) / 2, "which may be the next one"),
    (mixed_precision.moves, lambda w, u: u >= spacing(w) / 2, "which may be the weight itself"),
    (mixed_precision.moves, lambda w, u: None, "gave None"),
    (mixed_precision.moves, lambda w, u: math.nan, "gave nan"),
    (mixed_precision.moves, lambda w, u: 1 / 0, "ZeroDivisionError"),
    (mixed_precision.moves, True, "A function is wanted"),
    (mixed_precision.loss_scale, lambda g: 65_504 / g, "A power of two"),
    (mixed_precision.loss_scale, lambda g: 2.0 ** (15 - math.floor(math.log2(g))), "one factor less"),
    (mixed_precision.loss_scale, lambda g: 2.0 ** math.floor(math.log2(65_504 / g)), "still finite"),
    (mixed_precision.loss_scale, lambda g: 2.0 ** math.ceil(math.log2(65_520 / g)), "becomes infinite"),
    (mixed_precision.loss_scale, lambda g: 2.0 ** math.floor(math.log2(65_520 / g)), "infinite already"),
    (mixed_precision.loss_scale, lambda g: math.nan, "gave nan"),
    (mixed_precision.loss_scale, lambda g: g.scale, "AttributeError"),
    (mixed_precision.loss_scale, None, "A function is wanted"),
    (mixed_precision.updated_scale, lambda *s: grown(*s, at=0), "The present step counts"),
    (mixed_precision.updated_scale, lambda *s: grown(*s, keep=True), "have to follow each other"),
    (mixed_precision.updated_scale, lambda s, g, f, n: (s, g + 1) if f else (s / 2, 0), "the scale doubles"),
    (mixed_precision.updated_scale, lambda s, g, f, n: grown(s, g, True, n), "expected"),
    (mixed_precision.updated_scale, lambda *s: grown(*s)[::-1], "The scale comes first"),
    (mixed_precision.updated_scale, lambda s, g, f, n: s, "expected"),
    (mixed_precision.updated_scale, lambda s, g, f, n: None, "gave None"),
    (mixed_precision.rounded_by_chance, lambda x, g: x.bfloat16(), "Now and then"),
    (mixed_precision.rounded_by_chance, half_up_half_down, "of the way"),
    (mixed_precision.rounded_by_chance, with_noise, "none of its two neighbours"),
    (mixed_precision.rounded_by_chance, lambda x, g: by_chance(x, g, bits=2**15), "Now and then"),
    (mixed_precision.rounded_by_chance, lambda x, g: by_chance(x, g, dtype=torch.float32), "in bf16"),
    (mixed_precision.rounded_by_chance, lambda x, g: by_chance(x, None), "from the generator that is given"),
    (mixed_precision.rounded_by_chance, with_an_int64, "An int32 and an int64 make an int64"),
    (mixed_precision.rounded_by_chance, lambda x, g: x[0].item(), "a tensor in bf16"),
    (mixed_precision.rounded_by_chance, lambda x, g: x.bfloat16() * math.nan, "none of its two neighbours"),
    (
        mixed_precision.rounded_by_chance,
        lambda x, g: by_chance(x, g) if g.initial_seed() == 1 else None,
        "with another generator: a tensor in bf16 is wanted",
    ),
    (mixed_precision.rounded_by_chance, lambda x: x, "TypeError"),
    (mixed_precision.rounded_by_chance, None, "A function is wanted"),
    (checkpointing.interval, lambda c, n, d: young(c, 1, d), "one of them fails sooner."),
    (checkpointing.interval, lambda c, n, d: young(c, 1 / n, d), "not later"),
    (checkpointing.interval, lambda c, n, d: young(c, n, d, twice=1), "a 2 under the root"),
    (checkpointing.interval, lambda c, n, d: young(c, n, d, seconds=1), "86,400"),
    (checkpointing.interval, lambda c, n, d: young(c, n, d) ** 2, "Take the root"),
    (checkpointing.interval, lambda c, n, d: young(c, 1, d) / n, "under the root"),
    (checkpointing.interval, lambda c, n, d: math.nan, "gave nan"),
    (checkpointing.interval, lambda c, n, d: None, "gave None"),
    (checkpointing.write_whole, overwrite, "neither all of the old"),
    (checkpointing.write_whole, gone_before_it_is_there, "the old file is gone before"),
    (checkpointing.write_whole, by_way_of_another_folder, "write in the same folder"),
    (checkpointing.write_whole, flushed_to_nowhere, "file.flush() hands it to the system"),
    (checkpointing.write_whole, in_memory_first, "it writes in place"),
    (
        checkpointing.write_whole,
        lambda p, b: beside_and_rename(p, b, flush=False),
        "os.fsync(file.fileno()), called so, to the disk",
    ),
    (checkpointing.write_whole, lambda p, b: beside_and_rename(p, b, clear=False), "is left beside"),
    (checkpointing.write_whole, lambda p, b: beside_and_rename(p, b, swallow=True), "go on to the caller"),
    (checkpointing.write_whole, lambda p, b: beside_and_rename(p, list(b)[:-2]), "and should hold"),
    (checkpointing.write_whole, lambda p, b: None, "should hold"),
    (checkpointing.write_whole, lambda p, b: p.no_such_thing, "AttributeError"),
    (checkpointing.write_whole, "a string", "A function is wanted"),
    (checkpointing.flops_ratio, lambda p, s: 8 / 6, "without early stop"),
    (checkpointing.flops_ratio, lambda p, s: (8 - 2 / p) / 6, "Only the last block"),
    (checkpointing.flops_ratio, lambda p, s: (8 - 1 / s) / 6, "blocks of two products"),
    (checkpointing.flops_ratio, lambda p, s: (8 - 2 / s) / 6, "one product is left out, not all"),
    (checkpointing.flops_ratio, lambda p, s: (8 - 1 / (p * s)) / 6, "The forward pass is 2 of the 6"),
    (checkpointing.flops_ratio, lambda p, s: (2 - 2 / (p * s)) / 6, "what comes on top"),
    (checkpointing.flops_ratio, lambda p, s: math.nan, "gave nan"),
    (checkpointing.best_segment, lambda n, i, b: round(math.sqrt(n)), "√L is for blocks"),
    (
        checkpointing.best_segment,
        lambda n, i, b: max(1, round(math.sqrt(n * i / b))),
        "no segment is a part of one",
    ),
    (checkpointing.best_segment, lambda n, i, b: 1, "much more than their input"),
    (
        checkpointing.best_segment,
        lambda n, i, b: min(range(1, n + 1), key=lambda s: (peak(n, i, b, s), -s)),
        "Of equals the shortest",
    ),
    (
        checkpointing.best_segment,
        lambda n, i, b: min(range(1, n + 1), key=lambda s: -(-n // s) * i + s * b),
        "With ⌈L / s⌉ the last segment counts as a whole one",
    ),
    (
        checkpointing.best_segment,
        lambda n, i, b: min(range(1, n + 1), key=lambda s: (n / s - 1) * i + s * b),
        "no segment is a part of one",
    ),
    (checkpointing.best_segment, lambda n, i, b: None, "gave None"),
    (checkpointing.best_segment, lambda n, i, b: [][1], "IndexError"),
]


@pytest.mark.parametrize(("judge", "answer", "advice"), WRONG_FUNCTIONS)
def test_a_wrong_function_gets_advice_and_no_stack_trace(judge, answer, advice):
    verdict = judge(answer)
    assert verdict.status == "not yet"
    assert advice in verdict.words


def with_path_methods(path, pieces):
    """Another right way: a file with a name of its own, renamed by the path's own method."""
    beside = path.parent / "0.part"
    try:
        with beside.open("wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file)
        beside.replace(path)
    except OSError:
        beside.unlink()
        raise


RIGHT_IN_ANOTHER_WAY = [
    (mixed_precision.moves, lambda w, u: (torch.tensor(w) + u).bfloat16().item() != w),
    (mixed_precision.rounded_by_chance, by_chance),
    (mixed_precision.updated_scale, lambda *state: list(grown(*state))),
    (checkpointing.write_whole, with_path_methods),
    (checkpointing.write_whole, lambda p, b: beside_and_rename(p, b, sync="fdatasync")),
    (checkpointing.interval, lambda c, n, d: torch.tensor(young(c, n, d), dtype=torch.float64)),
    (checkpointing.checkpoint_bytes, 96_000_000_000),
    (
        checkpointing.best_segment,
        lambda n, i, b: predict.BlockStack(n, i, b, 0, 0, 0).best_segment or n,
    ),
]


@pytest.mark.parametrize(("judge", "answer"), RIGHT_IN_ANOTHER_WAY)
def test_a_right_answer_is_right_by_whatever_way(judge, answer):
    assert judge(answer).right, judge(answer)
