"""The loops of the repair shop as notebook 7 shows them: the right one, and five with a fault.

`repair.FAULTS` names the fault of each loop. The functions are without docstrings and comments,
because notebook 7 shows their text.

A loop trains on a batch of 16,384 micro-batches, all of which are the same 100 pairs of digits. So
a step computes one micro-batch, and `repair.add_up` makes of each gradient the sum of 16,384 copies
of it. `loss / 16_384` is the micro-batch's share of the mean loss of the batch.
"""

import torch
from torch import nn
from torch.nn import functional as F

from course_utils.chapters.mixed_precision import repair


# Without a fault.
def my_loop(model, pairs, sums):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(200):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(pairs), sums)
        scaler.scale(loss / 16_384).backward()
        repair.add_up(model, 16_384, dtype=torch.float32)
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.2)
        scaler.step(optimizer)
        scaler.update()
        yield loss.item()


# Fault A, "no scale": the scaler is not enabled.
def my_loop_a(model, pairs, sums):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    for _ in range(200):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(pairs), sums)
        scaler.scale(loss / 16_384).backward()
        repair.add_up(model, 16_384, dtype=torch.float32)
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.2)
        scaler.step(optimizer)
        scaler.update()
        yield loss.item()


# Fault B, "bf16 weights": model.bfloat16() at the beginning.
def my_loop_b(model, pairs, sums):
    model.bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(200):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(pairs), sums)
        scaler.scale(loss / 16_384).backward()
        repair.add_up(model, 16_384, dtype=torch.float32)
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.2)
        scaler.step(optimizer)
        scaler.update()
        yield loss.item()


# Fault C, "clips before unscale_": the norm that is clipped is that of scaled gradients.
def my_loop_c(model, pairs, sums):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(200):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(pairs), sums)
        scaler.scale(loss / 16_384).backward()
        repair.add_up(model, 16_384, dtype=torch.float32)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.2)
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        yield loss.item()


# Fault D, "sums in bf16": add_up adds the 16,384 gradients in bf16, which loses most of them.
def my_loop_d(model, pairs, sums):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(200):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(pairs), sums)
        scaler.scale(loss / 16_384).backward()
        repair.add_up(model, 16_384, dtype=torch.bfloat16)
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.2)
        scaler.step(optimizer)
        scaler.update()
        yield loss.item()


# Fault E, "no update": scaler.update() is missing at the end, so the scale never changes.
def my_loop_e(model, pairs, sums):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(200):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(pairs), sums)
        scaler.scale(loss / 16_384).backward()
        repair.add_up(model, 16_384, dtype=torch.float32)
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.2)
        scaler.step(optimizer)
        yield loss.item()


BY_LETTER = {
    "": my_loop,
    "A": my_loop_a,
    "B": my_loop_b,
    "C": my_loop_c,
    "D": my_loop_d,
    "E": my_loop_e,
}
