"""What vendors promise: dense peak rates by dtype, memory and bandwidth, each with the sheet it comes from.

Vendors like to print the rate with 2:4 sparsity, which is twice the dense one and not for dense matrices.
Here `peak_flop_per_sec` is dense; the sparse figures stand apart. Tensor cores' rates are those with fp32
accumulation, which is what torch uses. A dtype that a sheet does not give, or that its units do not have,
is left out. The sheets were read where others reproduce them; where only secondary sources gave a figure,
`source` says so.

What a product can achieve of such a peak is `achieved_flop_per_sec`, where somebody searched for it and said how.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

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


def _sheet(
    name: str,
    source: str,
    gigabytes: int,
    gb_per_sec: int,
    dense: dict[str, Number],
    *,
    sparse: dict[str, Number] | None = None,
    searched: dict[str, Number] | None = None,
) -> Machine:
    """A machine with its rates in TFLOP/s, as sheets print them, and as mamf-finder's search found them."""
    return Machine(
        name,
        {dtype: tera * TERA for dtype, tera in dense.items()},
        bytes=gigabytes * GB,
        bytes_per_sec=gb_per_sec * GB,
        source=source,
        sparse_flop_per_sec={dtype: tera * TERA for dtype, tera in (sparse or {}).items()},
        achieved_flop_per_sec={dtype: tera * TERA for dtype, tera in (searched or {}).items()},
        achieved_source=_SEARCHED if searched else "",
    )


_SEARCHED = (
    "mamf-finder's table (Bekman, Machine Learning Engineering, compute/accelerator, commit 744d01e, 2026-08-22): "
    "the best of the shapes that it tried, each the mean of 100 calls, with the software of its day; the H200's in bf16 by a note"
)
_V100 = "NVIDIA V100 data sheet (volta-v100-datasheet-update-us-1165301-r5): dense"
_A100 = "NVIDIA A100 data sheet (nvidia-us-2188504): dense, and sparse marked with an asterisk"
_A100_DENSE = {"fp64": 19.5, "fp32": 19.5, "tf32": 156, "bf16": 312, "fp16": 312}
_A100_SPARSE = {"tf32": 312, "bf16": 624, "fp16": 624}
_H100 = "NVIDIA H100 product page: tensor rates printed with sparsity, dense is half"
_HOPPER_DENSE = {"fp64": 67, "fp32": 67, "tf32": 494.5, "bf16": 989.5, "fp16": 989.5, "fp8": 1979}
_HOPPER_SPARSE = {"tf32": 989, "bf16": 1979, "fp16": 1979, "fp8": 3958}
_GH200 = "NVIDIA GH200 data sheet (memory, bandwidth); rates are its chip's, the H100's: printed with sparsity, dense is half"
_MI300X_DENSE = {
    "fp64": 163.4,
    "fp32": 163.4,
    "tf32": 653.7,
    "xf32": 653.7,
    "bf16": 1307.4,
    "fp16": 1307.4,
    "fp8": 2614.9,
}
_GA102 = "NVIDIA GA102 whitepaper v2 for bf16 and fp16 (dense / sparse, fp32 accumulation); the rest by secondary sources"

MACHINES: dict[str, Machine] = {
    machine.name: machine
    for machine in (
        _sheet(
            "T4",
            "NVIDIA T4 data sheet (t4-tensor-core-datasheet-951643): dense; 320 GB/s by the product page, as 309 were measured "
            "and the data sheet says 300",
            16,
            320,
            {"fp32": 8.1, "fp16": 65},
        ),
        _sheet("V100 SXM2", _V100, 32, 900, {"fp64": 7.8, "fp32": 15.7, "fp16": 125}),
        _sheet("V100 SXM2 16GB", _V100, 16, 900, {"fp64": 7.8, "fp32": 15.7, "fp16": 125}),
        _sheet("V100 PCIe", _V100, 32, 900, {"fp64": 7, "fp32": 14, "fp16": 112}),
        _sheet("V100 PCIe 16GB", _V100, 16, 900, {"fp64": 7, "fp32": 14, "fp16": 112}),
        _sheet("A100 SXM", _A100, 80, 2039, _A100_DENSE, sparse=_A100_SPARSE, searched={"bf16": 271.2}),
        _sheet("A100 SXM 40GB", _A100, 40, 1555, _A100_DENSE, sparse=_A100_SPARSE),
        _sheet("A100 PCIe", _A100, 80, 1935, _A100_DENSE, sparse=_A100_SPARSE, searched={"bf16": 252.9}),
        _sheet("A100 PCIe 40GB", _A100, 40, 1555, _A100_DENSE, sparse=_A100_SPARSE),
        _sheet(
            "H100 SXM",
            _H100,
            80,
            3350,
            _HOPPER_DENSE,
            sparse=_HOPPER_SPARSE,
            searched={"bf16": 794.5, "fp8": 1402.6},
        ),
        _sheet(
            "H100 PCIe",
            "NVIDIA H100 whitepaper v1.04 (bf16), the rest by a reseller's copy of the data sheet: printed with sparsity, dense is half",
            80,
            2000,
            {"fp64": 51, "fp32": 51, "tf32": 378, "bf16": 756, "fp16": 756, "fp8": 1513},
            sparse={"tf32": 756, "bf16": 1513, "fp16": 1513, "fp8": 3026},
        ),
        _sheet(
            "H100 NVL",
            "NVIDIA H100 NVL product brief PB-11773-001: one of its two GPUs, printed with sparsity, dense is half",
            94,
            3938,
            {"fp64": 60, "fp32": 60, "tf32": 417.5, "bf16": 835.5, "fp16": 835.5, "fp8": 1670.5},
            sparse={"tf32": 835, "bf16": 1671, "fp16": 1671, "fp8": 3341},
        ),
        _sheet(
            "H200 SXM",
            "NVIDIA H200 product page (memory, bandwidth); rates are its chip's, the H100's: printed with sparsity, dense is half",
            141,
            4800,
            _HOPPER_DENSE,
            sparse=_HOPPER_SPARSE,
            searched={"bf16": 794.5, "fp8": 1453.4},
        ),
        _sheet(
            "GH200",
            _GH200,
            96,
            4000,
            _HOPPER_DENSE,
            sparse=_HOPPER_SPARSE,
        ),
        _sheet(
            "GH200 144GB",
            _GH200,
            144,
            4900,
            _HOPPER_DENSE,
            sparse=_HOPPER_SPARSE,
            searched={"bf16": 828.6, "fp8": 1535},
        ),
        _sheet(
            "B200",
            "NVIDIA Blackwell data sheet, one GPU of an HGX B200: printed with sparsity, dense is half; tf32 by secondary sources",
            180,
            7700,
            {"tf32": 1125, "bf16": 2250, "fp16": 2250, "fp8": 4500},
            sparse={"tf32": 2250, "bf16": 4500, "fp16": 4500, "fp8": 9000},
            searched={"bf16": 1745, "fp8": 3432.5},
        ),
        _sheet(
            "GB200",
            "NVIDIA GB200 NVL72 page by secondary sources, one of the superchip's two GPUs: printed with sparsity, dense is half",
            186,
            8000,
            {"tf32": 1250, "bf16": 2500, "fp16": 2500, "fp8": 5000},
            sparse={"tf32": 2500, "bf16": 5000, "fp16": 5000, "fp8": 10_000},
            searched={"bf16": 1822, "fp8": 3615.6},
        ),
        _sheet(
            "B300",
            "NVIDIA HGX B300 page by secondary sources, one of its eight GPUs: printed with sparsity, dense is half",
            288,
            8000,
            {"tf32": 1125, "bf16": 2250, "fp16": 2250, "fp8": 4500},
            sparse={"tf32": 2250, "bf16": 4500, "fp16": 4500, "fp8": 9000},
            searched={"bf16": 1769, "fp8": 3353.3},
        ),
        _sheet(
            "L4",
            "NVIDIA L4 product page: tensor rates printed with sparsity, dense is half",
            24,
            300,
            {"fp32": 30.3, "tf32": 60, "bf16": 121, "fp16": 121, "fp8": 242.5},
            sparse={"tf32": 120, "bf16": 242, "fp16": 242, "fp8": 485},
        ),
        _sheet(
            "L40S",
            "NVIDIA L40S product page: dense | sparse",
            48,
            864,
            {"fp32": 91.6, "tf32": 183, "bf16": 362.05, "fp16": 362.05, "fp8": 733},
            sparse={"tf32": 366, "bf16": 733, "fp16": 733, "fp8": 1466},
        ),
        _sheet(
            "RTX 3080",
            _GA102,
            10,
            760,
            {"fp32": 29.8, "tf32": 29.8, "bf16": 59.5, "fp16": 59.5},
            sparse={"bf16": 119, "fp16": 119},
        ),
        _sheet(
            "RTX 3090",
            _GA102,
            24,
            936,
            {"fp32": 35.6, "tf32": 35.6, "bf16": 71.2, "fp16": 71.2},
            sparse={"bf16": 142.4, "fp16": 142.4},
        ),
        _sheet(
            "RTX 4090",
            "NVIDIA Ada whitepaper v2.1, appendix A: dense / sparse, fp32 accumulation; tf32 and memory by secondary sources",
            24,
            1008,
            {"fp32": 82.6, "tf32": 82.6, "bf16": 165.2, "fp16": 165.2, "fp8": 330.3},
            sparse={"bf16": 330.4, "fp16": 330.4, "fp8": 660.6},
        ),
        _sheet(
            "RTX 5090",
            "NVIDIA RTX Blackwell whitepaper v1.1, table 3: dense / sparse, fp32 accumulation; memory by secondary sources",
            32,
            1792,
            {"bf16": 209.5, "fp8": 419},
            sparse={"bf16": 419, "fp8": 838},
        ),
        _sheet(
            "MI300X",
            "AMD Instinct MI300 microarchitecture, ROCm documentation: dense matrix rates (its instructions call xf32 what the data "
            "sheet calls TF32); memory size by secondary sources",
            192,
            5300,
            _MI300X_DENSE,
            sparse={"fp16": 2610, "fp8": 5220},
            searched={"bf16": 668.4},
        ),
        _sheet(
            "MI325X",
            "AMD Instinct MI325X data sheet by secondary sources: dense matrix rates, the MI300X's",
            256,
            6000,
            _MI300X_DENSE,
            searched={"bf16": 784.9},
        ),
        _sheet(
            "MI355X",
            "AMD Instinct MI355X data sheet by secondary sources: dense matrix rates; its units have neither tf32 nor xf32",
            288,
            8000,
            {"fp64": 78.6, "fp32": 157.3, "bf16": 2516.6, "fp16": 2516.6, "fp8": 5033.2},
            searched={"bf16": 1565},
        ),
    )
}


def machine_named(name: str) -> Machine:
    """The machine of that name, or a sentence that lists the names there are."""
    if name not in MACHINES:
        raise ValueError(f"There is no machine {name!r} here. There are: {', '.join(MACHINES)}.")
    return MACHINES[name]
