"""What notebook 05's sections on windows and latent attention say in words."""

import warnings

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from course_utils.core import accountant
from course_utils.core.predict.known import known
from tests import NOTEBOOKS
from tests.helpers.notebooks import read


@pytest.fixture(scope="module")
def cells():
    (path,) = [path for path in NOTEBOOKS if path.stem == "05_gradients"]
    return {cell.id: cell.source for cell in read(path).cells}


def in_window(batch, head, query, key):
    return (key <= query) & (query - key < 32)


def test_on_a_cpu_flex_attention_has_no_backward_pass(cells):
    assert "on a CPU it has no backward pass" in cells["wins-11"]
    q, k, v = torch.zeros(3, 1, 1, 128, 16)
    mask = create_block_mask(in_window, None, None, 128, 128, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is not compiled
        flex_attention(q, k, v, block_mask=mask)
        with pytest.raises(NotImplementedError, match="backward on CPU"):
            flex_attention(q.requires_grad_(), k, v, block_mask=mask)


def test_gemmas_windows_save_less_than_a_tenth_of_the_flops_at_4096_tokens(cells):
    assert "At 4,096 tokens the windows save less than a tenth of the FLOPs." in cells["wins-14"]
    m = known("gemma-3-1b")
    # What a window leaves out is a triangle of pairs; a head is 256 wide, and a layer has 4.
    pairs = m.window_layers * (4096 - 512) * (4096 - 511) // 2
    spared = pairs * 4 * (2 * 256 + 2 * 256)
    left = accountant.active_forward_flops(m, 1, 4096, causal=True)
    assert 0.05 < spared / (left + spared) < 0.1


def test_gemmas_layers_with_windows_together_keep_a_third_of_a_whole_one(cells):
    assert "The other 22 together keep about a third" in cells["wins-18"]
    m = known("gemma-3-1b")
    whole = accountant.cached_tokens(m, 32_768) - (m.layers - m.window_layers) * 32_768
    assert whole / 32_768 == pytest.approx(1 / 3, rel=0.05)
