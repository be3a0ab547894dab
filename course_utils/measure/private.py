"""What torch keeps to itself, and may change in any version: all of it that this course uses, and what to do without.

No other module names anything of torch's that begins with an underscore. All of this was read in the source of
the version below; tests/test_private.py asks to read it again when there is another one.
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
    """Has `run(operation, args, kwargs)` in the place of every operation of torch within.

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
        """Not, for torch would import its compiler for that, which takes as long as torch itself does.

        If nobody asks this any more, tests/test_project.py says whether the compiler is imported again: leave
        it out then, or live with the import.
        """
        return False


# What computes attention on a CPU, for which torch's counter of FLOPs has no formula, and what computes it on a GPU, for
# which it has. A kernel of another name is refused by `flops` until it stands here; when torch has formulas for
# the CPU too, take these out.
COUNTED_LIKE = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: torch.ops.aten._scaled_dot_product_flash_attention,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: (
        torch.ops.aten._scaled_dot_product_flash_attention_backward
    ),
}

# The hooks that saved tensors go to now, as (pack, unpack), or None; with True whether torch traces or not. From this
# `peak_saved_bytes` knows whether hooks are set up within what it watches. Without it, let it watch all threads.
innermost_hooks = torch._C._autograd._top_saved_tensors_default_hooks

# A product of two matrices in fp8. torch.nn.functional.scaled_mm is the public one: it asks for each scale's recipe
# (ScalingType.TensorWise here). This one is what was timed on real GPUs; when it goes, take that one.
scaled_mm = torch._scaled_mm
