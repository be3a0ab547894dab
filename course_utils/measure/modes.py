"""What all modes here share, which see each operation of torch as it runs."""

from torch.utils._python_dispatch import TorchDispatchMode


class Uncompiled(TorchDispatchMode):
    """A mode that does not tell torch's compiler to keep away from it, for the compiler would be imported for that.

    It is never used in compiled code, and the import takes as long as that of torch itself.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
