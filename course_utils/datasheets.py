"""What vendors promise: dense peak rates by dtype, memory and bandwidth, each with the sheet it comes from.

The table is `datasheets.toml`, to be read beside the sheets. Vendors like to print the rate with 2:4 sparsity, which is
twice the dense one and not for dense matrices. Here `peak_flop_per_sec` is dense; the sparse figures stand apart.
What a product can achieve of such a peak is `achieved_flop_per_sec`, where somebody searched for it and said how.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.quantities import Number

TERA = 10**12
GB = 10**9


@dataclass(frozen=True)
class Machine:
    """One accelerator or processor. FLOP/s by dtype, bytes of memory, bytes per second to it, and says who."""

    name: str
    peak_flop_per_sec: Mapping[str, Number]
    bytes: int
    bytes_per_sec: Number
    source: str
    sparse_flop_per_sec: Mapping[str, Number] = field(default_factory=dict)
    # What a large product and a large copy really reach, and by whom that was measured.
    achieved_flop_per_sec: Mapping[str, Number] = field(default_factory=dict)
    achieved_bytes_per_sec: Number | None = None
    achieved_source: str = ""
    has_data_sheet: bool = True

    def peak(self, dtype: str) -> Number:
        """The dense peak for that dtype, or a sentence on which there are."""
        if dtype not in self.peak_flop_per_sec:
            known = ", ".join(self.peak_flop_per_sec)
            raise ValueError(f"No dense peak for {dtype!r} on {self.name}. There are: {known}.")
        return self.peak_flop_per_sec[dtype]


def _sheet(name: str, printed: Mapping[str, object], searched_by: str) -> Machine:
    """A machine of the table, which has TFLOP/s and GB as sheets print them."""
    by_dtype = {
        kind: {dtype: tera * TERA for dtype, tera in printed.get(kind, {}).items()}
        for kind in ("dense", "sparse", "searched")
    }
    return Machine(
        name,
        by_dtype["dense"],
        bytes=printed["gigabytes"] * GB,
        bytes_per_sec=printed["gb_per_sec"] * GB,
        source=printed["source"],
        sparse_flop_per_sec=by_dtype["sparse"],
        achieved_flop_per_sec=by_dtype["searched"],
        achieved_source=searched_by if "searched" in printed else "",
    )


def _sheets() -> dict[str, Machine]:
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    searched_by = table.pop("searched_by")
    return {name: _sheet(name, printed, searched_by) for name, printed in table.items()}


MACHINES: dict[str, Machine] = _sheets()


def machine_named(name: str) -> Machine:
    """The machine of that name, or a sentence that lists the names there are."""
    if name not in MACHINES:
        raise ValueError(f"There is no machine {name!r} here. There are: {', '.join(MACHINES)}.")
    return MACHINES[name]
