"""The private names of torch that this course uses. torch may change them in any version.

No other module names anything of torch's that begins with an underscore. All of this was read in
the source of the version below; when another one is installed, a test in
tests/core/test_internals.py fails and asks to read it again.
"""

from collections.abc import Callable

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["DataDependentOutputException", "FakeTensor", "FakeTensorMode"]

READ_IN = "2.13.0"

# Fake tensors, for `account`: a shape, a dtype and a device, and no memory. torch.compile is built
# on them, so they are more likely to move than to go. Without them torch's "meta" device would do,
# but it computes attention by other operations, which keep several times the bytes.


class Mode(TorchDispatchMode):
    """Inside this context, `run(operation, args, kwargs)` replaces every operation of torch.

    torch documents the class, but not the module that it is in: if it moves, import it from there.
    """

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        """Pass the operation to `run`. torch calls this for each operation."""
        return self.run(func, args, kwargs or {})

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: otherwise torch would import its compiler, which takes as long as torch itself.

        If torch does not call this any more, leave it out, and see by tests/project/test_project.py
        whether the compiler is imported again.
        """
        return False


def changes(func: Callable[..., object]) -> bool:
    """Whether the operation writes into its arguments.

    No public name tells this, although torch.library.opcheck looks at the same attribute.
    """
    return func._schema.is_mutable


# The kernels of fused attention. On a CPU, torch's counter of FLOPs has no formula for it before
# 2.15; on a GPU, 2.11 has one that refuses heads that share a key. Their arguments begin with the
# query, the key and the value, after the result's gradient in the backward pass. `flops` refuses a
# kernel of another name until it is in this list.
_KERNELS = ("flash_attention_for_cpu", "flash_attention", "efficient_attention", "cudnn_attention")
_FORWARD = [f"_scaled_dot_product_{kernel}" for kernel in _KERNELS]
ATTENTION = [getattr(torch.ops.aten, name) for name in _FORWARD]
ATTENTION_BACKWARD = [getattr(torch.ops.aten, f"{name}_backward") for name in _FORWARD]

# The hooks that saved tensors go to now, as (pack, unpack), or None; with the argument True, also
# while torch traces. By them `peak_saved_bytes` knows whether other hooks are set within the call
# that it watches. If it is removed, let `peak_saved_bytes` watch all threads.
innermost_hooks = torch._C._autograd._top_saved_tensors_default_hooks

# A product of two matrices in fp8. The public function is torch.nn.functional.scaled_mm, which asks
# for each scale's recipe (ScalingType.TensorWise here). This private one was timed on real GPUs;
# when it goes, take the public one.
scaled_mm = torch._scaled_mm
