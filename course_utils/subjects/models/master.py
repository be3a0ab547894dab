"""An optimizer that keeps a master copy of the parameters, in fp32."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor


class WithMaster(torch.optim.Optimizer):
    """An optimizer that updates fp32 copies of all parameters, then rounds them to the parameters.

    So updates add up that are too small to change a parameter in 16 bits.

    `make_optimizer` takes the copies, and returns the optimizer that updates them. `keep_gradients`
    says whether the copies' gradients stay in memory after a step.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        make_optimizer: Callable[..., torch.optim.Optimizer],
        *,
        keep_gradients: bool,
    ) -> None:
        """Copy the parameters in fp32, and make the optimizer of the copies."""
        self.parameters = list(parameters)
        self.master = [p.detach().float() for p in self.parameters]
        self.inner = make_optimizer(self.master)
        self.keep_gradients = keep_gradients
        super().__init__(self.parameters, {})  # without options of its own
        # torch has just set an empty state. The averages are in that of the inner optimizer.
        self.state = self.inner.state

    @torch.no_grad()
    def step(self) -> None:
        """Make the inner optimizer's step on the master copy, with gradients in fp32."""
        for copy, parameter in zip(self.master, self.parameters, strict=True):
            copy.grad = parameter.grad.float()  # the same tensor, if it is in fp32 already
        self.inner.step()
        for copy, parameter in zip(self.master, self.parameters, strict=True):
            parameter.copy_(copy)
            if not self.keep_gradients:
                copy.grad = None
