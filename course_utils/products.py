"""One matrix product, ready to be timed: in this process, or in one of its own that can be killed.

A product that runs can't be interrupted. Where it may take long, it runs in a child process, which ends
with its parent or when nobody listens any more.
"""

import json
import os
import selectors
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator
from typing import TextIO

import torch

from course_utils import measure
from course_utils.measure import Step, Timing
from course_utils.quantities import Number

DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8")
BLOCK = 2**22
_LISTEN_S = 0.1  # so soon a child that is no longer wanted ends


def matmul_call(b: int, d: int, k: int, dtype: str, device: str = "cpu") -> Callable[[], object]:
    """(b, d) @ (d, k) of normally distributed numbers, as a call without arguments.

    Random numbers, because a GPU draws less power on constant ones and then runs faster than it would.
    """
    if dtype not in DTYPES:
        raise ValueError(f"No product in {dtype!r} here. There are: {', '.join(DTYPES)}.")
    if dtype == "tf32":
        return _tf32_call(b, d, k, device)
    if dtype == "fp8":
        return _fp8_call(b, d, k, device)
    if dtype == "fp64" and torch.device(device).type == "mps":
        raise ValueError("Apple's GPUs have no fp64.")
    kind = measure.DTYPES[dtype]
    x, w = _random(b, d, kind, device), _random(d, k, kind, device)
    out = torch.empty(b, k, device=device, dtype=kind)
    return lambda: torch.mm(x, w, out=out)


def _random(rows: int, columns: int, dtype: torch.dtype, device: str) -> torch.Tensor:
    """Normally distributed numbers; in a large matrix one random block again and again, as drawing takes long."""
    numbers = torch.empty(rows * columns, dtype=dtype, device=device)
    block = torch.randn(min(len(numbers), BLOCK), device=device).to(dtype)
    for part in numbers.split(BLOCK):
        part.copy_(block[: len(part)])
    return numbers.view(rows, columns)


def _tf32_call(b: int, d: int, k: int, device: str) -> Callable[[], object]:
    if torch.device(device).type != "cuda":
        raise ValueError("tf32 is a way in which NVIDIA's tensor cores multiply; this device has none.")
    product = matmul_call(b, d, k, "fp32", device)

    def call() -> object:
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            return product()
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    return call


def _fp8_call(b: int, d: int, k: int, device: str) -> Callable[[], object]:
    if torch.device(device).type != "cuda" or torch.cuda.get_device_capability(device) < (8, 9):
        raise ValueError("This device has no units for fp8 products; an H100, an L4 or an RTX 4090 has.")
    if b % 16 or d % 16 or k % 16:
        raise ValueError(f"torch multiplies fp8 in sizes that are multiples of 16; got {b}, {d} and {k}.")
    x = _random(b, d, torch.float8_e4m3fn, device)
    w = _random(k, d, torch.float8_e4m3fn, device).t()  # the second operand lies column by column
    one = torch.ones((), device=device)
    return lambda: torch._scaled_mm(x, w, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def timing_steps(
    b: int, d: int, k: int, dtype: str, *, device: str = "cpu", at_most_s: Number = 2.0
) -> Generator[Step, None, Timing]:
    """The product's time, step by step, in this process."""
    return (
        yield from measure.timing_steps(
            matmul_call(b, d, k, dtype, device), device=device, at_most_s=at_most_s
        )
    )


def timing_steps_apart(
    b: int, d: int, k: int, dtype: str, *, device: str = "cpu", at_most_s: Number = 2.0
) -> Generator[Step, None, Timing]:
    """The same in a process of its own. Whoever drops this generator kills that process."""
    order = json.dumps({"b": b, "d": d, "k": k, "dtype": dtype, "device": device, "at_most_s": at_most_s})
    with tempfile.TemporaryFile("w+") as complaints:
        child = subprocess.Popen(
            [sys.executable, "-m", "course_utils.products", order],
            stdin=subprocess.PIPE,  # closed when we end, however that comes
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
        )
        try:
            return (yield from _heard_from(child, complaints))
        finally:
            child.kill()
            child.wait()
            child.stdin.close()
            child.stdout.close()


def _heard_from(child: subprocess.Popen, complaints: TextIO) -> Generator[Step, None, Timing]:
    latest = Step(0, "Starting a process of its own, which can be killed.")
    with selectors.DefaultSelector() as ear:
        ear.register(child.stdout, selectors.EVENT_READ)
        while True:
            yield latest
            if not ear.select(_LISTEN_S):
                continue
            line = child.stdout.readline()
            if not line:
                complaints.seek(0)
                last_words = "".join(complaints.readlines()[-1:]).strip() or f"Its status is {child.wait()}."
                raise RuntimeError(f"The process that measured ended early. {last_words}")
            said = json.loads(line)
            if "refusal" in said:
                raise ValueError(said["refusal"])
            if "timing" in said:
                return Timing(**{**said["timing"], "samples": tuple(said["timing"]["samples"])})
            latest = Step(**said)


def _end_with_the_parent() -> None:
    def listen() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()


def _main(order: str) -> None:
    _end_with_the_parent()

    ours = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed, by libraries too, must not come between

    def say(what: dict[str, object]) -> None:
        print(json.dumps(what), file=ours, flush=True)

    say({"fraction": 0, "report": "The first call runs; nobody can tell how far it is."})
    try:
        steps = timing_steps(**json.loads(order))
        while True:
            try:
                say(vars(next(steps)))
            except StopIteration as end:
                say({"timing": vars(end.value)})
                return
    except (ValueError, RuntimeError) as error:
        say({"refusal": str(error)})


if __name__ == "__main__":
    _main(sys.argv[1])
