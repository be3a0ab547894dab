"""FLOPs as torch's own counter sees them: completed where it passes something over, and loud where it is blind."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch.utils.flop_counter import (
    FlopCounterMode,
    _FlopCounterMode,
    conv_flop_count,
    sdpa_backward_flop_count,
    sdpa_flop_count,
)

from course_utils.measure.modes import Uncompiled
from course_utils.quantities import Ledger

# Operations that multiply and add, and that torch's counter passes over without a word.
# test_measure.py goes through all of torch's operations for one that is missing here.
BLIND = {
    *("dot", "vdot", "mv", "addmv", "addmv_", "addr", "addr_", "addbmm", "addbmm_", "_foreach_mm", "_int_mm"),
    *("_trilinear", "_cdist_forward", "_cdist_backward", "_euclidean_dist", "_compute_linear_combination"),
    *("_grouped_mm", "_scaled_grouped_mm", "_scaled_grouped_mm_v2", "_scaled_mm_v2", "_addmm_activation"),
    *("mkldnn_rnn_layer", "mkldnn_rnn_layer_backward", "_cudnn_rnn", "_cudnn_rnn_backward", "_lstm_mps"),
    *("lstm_mps_backward", "miopen_rnn", "miopen_rnn_backward", "quantized_gru", "quantized_lstm"),
    *("_pdist_forward", "_pdist_backward"),
    *("linalg_cholesky_ex", "linalg_eig", "linalg_inv_ex", "linalg_ldl_factor_ex", "linalg_ldl_solve"),
    *("linalg_lstsq", "linalg_lu", "linalg_lu_factor_ex", "linalg_lu_solve", "linalg_householder_product"),
    *("linalg_matrix_exp", "linalg_pinv", "linalg_qr", "linalg_solve_triangular", "_linalg_det"),
    *("_linalg_eigh", "_linalg_eigvals", "_linalg_slogdet", "_linalg_solve_ex", "_linalg_svd"),
    *("cholesky", "cholesky_inverse", "cholesky_solve", "_cholesky_solve_helper", "geqrf", "ormqr", "orgqr"),
    *("triangular_solve", "_lu_with_info", "_fft_c2c", "_fft_c2r", "_fft_r2c"),
    *("_sparse_addmm", "_sparse_mm_reduce_impl", "_sparse_mm_reduce_impl_backward", "_sparse_sparse_matmul"),
    *("_sparse_semi_structured_addmm", "_sparse_semi_structured_linear", "_sparse_semi_structured_mm"),
    *(
        "sparse_sampled_addmm",
        "hspmm",
        "sspaddmm",
        "smm",
        "_spsolve",
        "_cslt_sparse_mm",
        "_cslt_sparse_mm_search",
    ),
    *("_weight_int4pack_mm", "_weight_int4pack_mm_for_cpu", "_weight_int4pack_mm_with_scales_and_zeros"),
    *("_weight_int8pack_mm", "_dyn_quant_matmul_4bit", "_mixed_dtypes_linear", "mkldnn_linear"),
    *("mkldnn_linear_backward", "mkldnn_linear_backward_input", "mkldnn_linear_backward_weights"),
    *("linear_backward", "matmul_backward", "fbgemm_linear_fp16_weight", "fbgemm_linear_int8_weight"),
    *("_wrapped_quantized_linear_prepacked", "_native_multi_head_attention", "_triton_multi_head_attention"),
    *("_transformer_encoder_layer_fwd",),
    *("_triton_scaled_dot_attention", "_scaled_dot_product_attention_math_for_mps"),
    *("_scaled_dot_product_fused_attention_overrideable", "_flash_attention_forward_no_dropout_inplace"),
    *("_scaled_dot_product_fused_attention_overrideable_backward",),
    *("_cudnn_attention_forward", "_cudnn_attention_backward", "convolution_backward_overrideable"),
    *(
        "_conv_depthwise2d",
        "conv_depthwise3d",
        "conv_tbc",
        "conv_tbc_backward",
        "_nnpack_spatial_convolution",
    ),
    *("cudnn_convolution_relu", "cudnn_convolution_add_relu", "cudnn_convolution_transpose"),
    *("mkldnn_convolution", "_mps_convolution", "_mps_convolution_transpose", "mps_convolution_backward"),
    *("mps_convolution_transpose_backward", "miopen_convolution", "miopen_convolution_add_relu"),
    *("miopen_convolution_relu", "miopen_convolution_transpose", "miopen_depthwise_convolution"),
    *("slow_conv3d_forward", "slow_conv_dilated2d", "slow_conv_dilated3d", "slow_conv_transpose2d"),
    *("slow_conv_transpose3d", "_slow_conv2d_backward"),
}


def flops(fn: Callable[[], object]) -> Ledger:
    """2 FLOPs for every multiply-add that torch's matrix products, convolutions and attention really ran, by operation.

    Element-wise operations, reductions and optimizers count 0. What multiplies and adds where torch's
    counter would say 0 raises an error.

    >>> flops(lambda: torch.ones(8, 3) @ torch.ones(3, 5)).total
    240
    """
    with _Guard(), _Counter(display=False, custom_mapping=_ALSO) as counter:
        fn()
    by_operation = counter.get_flop_counts().get("Global", {})
    return Ledger({_name(operation): n for operation, n in by_operation.items()}, unit="FLOPs")


def _attention(
    query: Sequence[int], key: Sequence[int], value: Sequence[int], *_: object, **__: object
) -> int:
    return sdpa_flop_count(query, key, value)


def _attention_backward(
    grad_out: Sequence[int],
    query: Sequence[int],
    key: Sequence[int],
    value: Sequence[int],
    *_: object,
    **__: object,
) -> int:
    """Five products, where the formula has four: the kernel computes the scores anew."""
    return sdpa_backward_flop_count(grad_out, query, key, value)


def _added_product(
    target: Sequence[int], a: Sequence[int], b: Sequence[int], *_: object, **__: object
) -> int:
    """Also of many pairs at once. torch's own formula cannot be registered for a second operation."""
    return 2 * math.prod(a) * b[-1]


def _convolution_backward(
    grad_out: Sequence[int], x: Sequence[int], w: Sequence[int], *others: object, **__: object
) -> int:
    """The forward's count for each gradient but the bias's; torch's own formula forgets the groups."""
    _bias, _stride, _padding, _dilation, transposed, _output_padding, _groups, wanted = others
    return conv_flop_count(x, w, grad_out, transposed=transposed) * sum(wanted[:2])


_ALSO: Mapping[object, Callable[..., int]] = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
    torch.ops.aten.convolution_backward: _convolution_backward,
    torch.ops.aten.addmm_: _added_product,
    torch.ops.aten.baddbmm_: _added_product,
}


class _Counter(FlopCounterMode):
    """torch's own counter, to the letter, but for the import of the compiler that Uncompiled spares."""

    def __enter__(self) -> "_Counter":
        super().__enter__()
        self.mode.__class__ = _UncompiledCounting
        return self


class _UncompiledCounting(Uncompiled, _FlopCounterMode):
    __torch_dispatch__ = _FlopCounterMode.__torch_dispatch__.__wrapped__


class _Guard(Uncompiled):
    """Sees every operation after the counter has, and refuses those for which it has no formula."""

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: object,
        args: tuple = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        name = _name(func.overloadpacket)
        sparse = any(isinstance(arg, torch.Tensor) and arg.layout != torch.strided for arg in args)
        if name in BLIND or func.namespace == "quantized" or (sparse and "mm" in name):
            raise ValueError(
                f"torch's counter has no formula for {name!r} and would say 0. If a vector is the reason, give it "
                "a second dimension, as in x @ w[:, None]; otherwise count this operation by hand."
            )
        return func(*args, **(kwargs or {}))


def _name(operation: object) -> str:
    return str(operation).removeprefix("aten.")
