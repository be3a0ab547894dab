"""A storage and the tensor that looks at it, through a chain of operations: chosen or typed, never run as code."""

import re
from collections.abc import Callable, Mapping

import ipywidgets as widgets
import torch

from course_utils import measure
from course_utils.labs.operations import MOST_DIMENSIONS, MOST_ELEMENTS, Operation, chain
from course_utils.labs.panel import Panel, View
from course_utils.labs.stride_picture import Chain, view

DTYPES = ("fp32", "fp64", "bf16")
PRESETS = {
    "a matrix": ("4 6", ""),
    "its transpose": ("4 6", "t()"),
    "a slice": ("4 6", "[1:, ::2]"),
    "a legal view of a slice": ("4 6", "[:, ::2].view(2, 2, 3)"),
    "a view that is refused": ("2 3 4", "transpose(0, 1).view(6, 4)"),
    "reshape copies": ("2 3 4", "transpose(0, 1).reshape(6, 4)"),
    "one row for all": ("6", "expand(4, 6)"),
    "windows that overlap": ("8", "unfold(0, 3, 1)"),
    "heads": ("2 3 8", "view(2, 3, 4, 2).transpose(1, 2)"),
}


def _inside_out(t: torch.Tensor) -> str:
    return f"permute({', '.join(str(d) for d in reversed(range(t.ndim)))})"


def _three_times(t: torch.Tensor) -> str:
    return f"expand({', '.join(['3'] + ['-1'] * t.ndim)})"


# What a button appends, perhaps in view of the tensor so far.
BUTTONS: Mapping[str, str | Callable[[torch.Tensor], str]] = {
    "transpose": "transpose(-2, -1)",
    "permute": _inside_out,
    "[1:]": "[1:]",
    "[..., ::2]": "[..., ::2]",
    "select": "select(0, 0)",
    "view(-1)": "view(-1)",
    "reshape(-1)": "reshape(-1)",
    "flatten": "flatten()",
    "expand": _three_times,
    "unfold": "unfold(-1, 2, 1)",
    "contiguous": "contiguous()",
}


def stride_lab() -> Panel:
    """The stride lab."""
    style = {"button_width": "auto", "description_width": "initial"}
    row = widgets.Layout(width="auto", flex_flow="row nowrap")
    controls = {
        "shape": _typed("4 6", "shape", "200px"),
        "dtype": widgets.ToggleButtons(options=DTYPES, description="dtype", layout=row, style=style),
        "operations": _typed("t()", "operations", "520px"),
        "element": _typed("2 1", "element", "200px"),
    }
    return Panel(
        "Stride lab",
        show,
        controls,
        presets={
            name: {"shape": shape, "operations": operations, "element": ""}
            for name, (shape, operations) in PRESETS.items()
        },
        actions={label: _appending(what) for label, what in BUTTONS.items()} | {"undo": undo},
        pick=pointed_at,
    )


def _typed(value: str, name: str, width: str) -> widgets.Text:
    return widgets.Text(value, description=name, continuous_update=True, layout=widgets.Layout(width=width))


def show(shape: str, dtype: str, operations: str, element: str) -> View:
    """The tensor at the end of the chain."""
    found = applied(shape, dtype, operations)
    return view(found, element_of(element, found.end))


def applied(shape: str, dtype: str, operations: str) -> Chain:
    """Every link as far as torch goes along, and why it goes no further."""
    sizes = shape_of(shape)
    links = chain(operations)
    base = torch.arange(torch.Size(sizes).numel()).to(measure.DTYPES[dtype]).view(sizes)
    tensors = [base]
    for link in links:
        try:
            tensors.append(link.applied_to(tensors[-1]))
        except ValueError as error:
            return Chain(tuple(links), tuple(tensors), str(error))
    return Chain(tuple(links), tuple(tensors), "")


def shape_of(words: str) -> tuple[int, ...]:
    """What was typed, as a shape.

    >>> shape_of("2 3 4"), shape_of("(2, 3)")
    ((2, 3, 4), (2, 3))
    """
    said = words.strip().removeprefix("(").removesuffix(")").strip()
    numbers = [part for part in re.split(r"[\s,×x]+", said) if part]
    good = len(words) <= 60 and all(re.fullmatch(r"\d{1,6}", n, re.ASCII) for n in numbers)
    if not numbers or not good or len(numbers) > MOST_DIMENSIONS:
        raise ValueError(
            f"“{words[:60]}” is no shape. Type one to {MOST_DIMENSIONS} sizes, like 4 6 or 2, 3, 4."
        )
    shape = tuple(map(int, numbers))
    elements = torch.Size(shape).numel() if max(shape) <= MOST_ELEMENTS else max(shape)
    if elements > MOST_ELEMENTS:
        raise ValueError(
            f"{shape} has more than the {MOST_ELEMENTS} elements that this lab draws. Take less."
        )
    return shape


def element_of(words: str, t: torch.Tensor) -> tuple[int, ...] | None:
    """The index that was typed; where the tensor has no such element, its last one."""
    numbers = re.findall(r"[-−]?\d{1,6}", words, re.ASCII)
    index = tuple(int(n.replace("−", "-")) for n in numbers)
    if len(index) == t.ndim and all(-n <= i < n for i, n in zip(index, t.shape, strict=True)):
        return tuple(i % n for i, n in zip(index, t.shape, strict=True))
    return tuple(n - 1 for n in t.shape) if t.numel() else None


def pointed_at(key: str, **values: str) -> dict[str, str]:
    """The controls after an element has been pointed at."""
    return {"element": key}


def _appending(what: str | Callable[[torch.Tensor], str]) -> Callable[..., dict[str, str]]:
    def append(shape: str, dtype: str, operations: str, element: str) -> dict[str, str]:
        found = applied(shape, dtype, operations)
        link = what if isinstance(what, str) else what(found.end)
        return {"operations": typed([*found.done, *chain(link)])}

    return append


def undo(shape: str, dtype: str, operations: str, element: str) -> dict[str, str]:
    """Without the last operation."""
    return {"operations": typed(chain(operations)[:-1])}


def typed(links: list[Operation]) -> str:
    """The chain as one would type it."""
    parts = (
        link.text if not link.name or place == 0 else f".{link.text}" for place, link in enumerate(links)
    )
    return "".join(parts)
