"""The private names of torch that this course uses. torch may change them in any version.

No other module names anything of torch's that begins with an underscore. All of this was read in the source of
the version below; tests/core/test_internals.py asks to read it again when there is another one.
"""

from collections.abc import Callable

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["DataDependentOutputException", "FakeTensor", "FakeTensorMode"]

READ_IN = "2.13.0"

# Fake tensors, for `account`: a shape, a dtype and a device, and no memory. torch.compile stands on them, so they
# move rather than go. Without them torch's "meta" device does the same, but for attention, which takes another
# way there and keeps several times the bytes.


class Mode(TorchDispatchMode):
    """Inside this context, `run(operation, args, kwargs)` replaces every operation of torch.

    torch documents the class, but not the module that it lies in: if it moves, import it from there.
    """

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        return self.run(func, args, kwargs or {})

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: otherwise torch would import its compiler, which takes as long as torch itself does.

        If nobody asks this any more, tests/project/test_project.py says whether the compiler is imported again: leave
        it out then, or live with the import.
        """
        return False


def changes(func: Callable[..., object]) -> bool:
    """Whether the operation writes into what it is given. torch.library.opcheck asks the same; no public name says it."""
    return func._schema.is_mutable


# What computes fused attention: on a CPU, for which torch's counter of FLOPs has no formula before 2.15, and on a GPU,
# for which 2.11 has one that refuses heads that share a key. Each begins with the query, the key and the value,
# after the result's gradient on the way back. `flops` refuses a kernel of another name until it stands here.
_KERNELS = "flash_attention_for_cpu", "flash_attention", "efficient_attention", "cudnn_attention"
ATTENTION, ATTENTION_BACKWARD = (
    [getattr(torch.ops.aten, f"_scaled_dot_product_{kernel}{way}") for kernel in _KERNELS]
    for way in ("", "_backward")
)

# The hooks that saved tensors go to now, as (pack, unpack), or None; with True whether torch traces or not. From this
# `peak_saved_bytes` knows whether hooks are set up within what it watches. Without it, let it watch all threads.
innermost_hooks = torch._C._autograd._top_saved_tensors_default_hooks

# A product of two matrices in fp8. torch.nn.functional.scaled_mm is the public one: it asks for each scale's recipe
# (ScalingType.TensorWise here). This one is what was timed on real GPUs; when it goes, take that one.
scaled_mm = torch._scaled_mm
