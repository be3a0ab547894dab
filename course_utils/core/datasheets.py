"""What vendors promise: dense peak rates by dtype, memory and bandwidth, each with its source.

The table is `datasheets.toml`, to be read beside the data sheets. Vendors like to print the rate
with 2:4 sparsity, which is twice the dense one, and which dense matrices cannot reach. So
`peak_flop_per_sec` is dense, and the sparse figures are in a field of their own. What a product can
reach of such a peak is `achieved_flop_per_sec`, where somebody searched for it and said how.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.core.say import Number
from course_utils.core.say.language import translated

TERA = 10**12
GB = 10**9


@dataclass(frozen=True)
class Machine:
    """One accelerator or processor: FLOP/s by dtype, memory and its bandwidth, and the source."""

    name: str
    peak_flop_per_sec: Mapping[str, Number]
    bytes: int  # of its memory
    bytes_per_sec: Number  # that its memory reads and writes
    source: str
    sparse_flop_per_sec: Mapping[str, Number] = field(default_factory=dict)
    # What a large product and a large copy really reach, and who measured it.
    achieved_flop_per_sec: Mapping[str, Number] = field(default_factory=dict)
    achieved_bytes_per_sec: Number | None = None
    achieved_source: str = ""
    has_data_sheet: bool = True  # False: the peaks were measured, and nobody promised them

    def peak(self, dtype: str) -> Number:
        """The dense peak for that dtype. ValueError, with the sheet's dtypes, if it has none."""
        if dtype not in self.peak_flop_per_sec:
            refused = translated(
                "No dense peak for {dtype} on {machine}. There are: {known}.",
                dtype=repr(dtype),
                machine=self.name,
                known=", ".join(self.peak_flop_per_sec),
            )
            raise ValueError(refused)
        return self.peak_flop_per_sec[dtype]


def _rates(printed: Mapping[str, object], kind: str) -> dict[str, Number]:
    """FLOP/s by dtype, from the TFLOP/s that an entry of the table has under `kind`.

    `kind` is "dense", "sparse" or "searched". `printed` is the entry of a machine, such as
    {"gigabytes": 80, "dense": {"bf16": 312}, …}. It may have nothing under `kind`.
    """
    return {dtype: tera * TERA for dtype, tera in printed.get(kind, {}).items()}


def _sheet(name: str, printed: Mapping[str, object], searched_by: str) -> Machine:
    """The machine `name`, made from its entry `printed`: TFLOP/s and GB become FLOP/s and bytes.

    `printed` has what the data sheet says, by the names in datasheets.toml. Its rates under
    "searched" are the best that somebody reached with products of many shapes, and `searched_by`
    names that source.
    """
    return Machine(
        name,
        _rates(printed, "dense"),
        bytes=printed["gigabytes"] * GB,
        bytes_per_sec=printed["gb_per_sec"] * GB,
        source=printed["source"],
        sparse_flop_per_sec=_rates(printed, "sparse"),
        achieved_flop_per_sec=_rates(printed, "searched"),
        achieved_source=searched_by if "searched" in printed else "",
    )


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_SEARCHED_BY = _TABLE.pop("searched_by")
MACHINES: dict[str, Machine] = {
    name: _sheet(name, printed, _SEARCHED_BY) for name, printed in _TABLE.items()
}


def machine_named(name: str) -> Machine:
    """The machine of that name. ValueError, with the names there are, if there is none."""
    if name not in MACHINES:
        raise ValueError(f"There is no machine {name!r} here. There are: {', '.join(MACHINES)}.")
    return MACHINES[name]


def sheet_of_card(torch_name: str, memory_bytes: int) -> Machine | None:
    """The data sheet of a GPU, by torch's name for the GPU and its memory; None if unknown.

    torch's name is such as "NVIDIA H100 80GB HBM3", and the data sheet's such as "H100 SXM".
    The name alone is not enough, because GPUs of one name come with memories of several sizes.
    """
    for name, printed in _TABLE.items():
        # torch reports some percent more or less: 84.9e9 bytes for an H100 of 80 GB.
        same_memory = abs(memory_bytes / MACHINES[name].bytes - 1) < 0.15
        # `printed["torch_name"]` is a pattern, such as "V100-SXM2-32GB$".
        if same_memory and re.search(printed["torch_name"], torch_name):
            return MACHINES[name]
    return None
