"""Linear layers that read 8-bit weights: the same numbers, and only where it pays."""

import pytest
import torch
from helpers import tiny_model

from specdec_lab.draft_model import load_draft, new_draft, save_draft
from specdec_lab.eight_bit import EightBitLinear


def layer(rows: int, columns: int, dtype: torch.dtype) -> EightBitLinear:
    generator = torch.Generator().manual_seed(rows + columns)
    codes = torch.randint(-127, 128, (rows, columns), dtype=torch.int8, generator=generator)
    scale = torch.rand(rows, 1, generator=generator) / 100 + 0.001
    return EightBitLinear((codes * scale).to(dtype)).read_from(codes, scale)


def counted(monkeypatch) -> list[tuple[int, ...]]:
    """The shapes of the inputs of every 8-bit product from here on."""
    shapes, product = [], torch.ops.aten._weight_int8pack_mm

    def multiply(few, codes, scale):
        shapes.append(tuple(few.shape))
        return product(few, codes, scale)

    monkeypatch.setattr(torch.ops.aten, "_weight_int8pack_mm", multiply)
    return shapes


@pytest.mark.parametrize("rows", [1, 3, 7, 33, 64])
@pytest.mark.parametrize("columns", [32, 96, 576])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (2, 2), (4,)])
def test_both_ways_say_the_same(monkeypatch, rows, columns, shape):
    used = counted(monkeypatch)
    made = layer(rows, columns, torch.bfloat16)
    hidden = torch.randn(*shape, columns, generator=torch.Generator().manual_seed(0)).bfloat16()
    exact = hidden.double() @ (made.codes.double() * made.scale.double()[:, None]).T
    assert made(hidden).shape == exact.shape
    torch.testing.assert_close(
        made(hidden).double(), exact, rtol=2**-7, atol=float(exact.abs().max()) / 200
    )
    assert len(used) == 2


def test_rows_that_begin_anywhere_are_put_where_the_product_can_read_them():
    made = layer(20, 64, torch.bfloat16)
    memory = torch.randn(200, generator=torch.Generator().manual_seed(0)).bfloat16()
    for start in range(1, 40):
        hidden = memory[start : start + 128].view(2, 64)
        torch.testing.assert_close(made(hidden), made(hidden.clone()), rtol=0, atol=0)
        codes = torch.zeros(start + 20 * 64, dtype=torch.int8)[start:].view(20, 64)
        assert not layer(20, 64, torch.bfloat16).read_from(codes, torch.ones(20, 1))(hidden).any()


@pytest.mark.parametrize(
    ("columns", "dtype", "rows"),
    [(96, torch.float32, 1), (96, torch.bfloat16, 5), (48, torch.bfloat16, 1), (7, torch.bfloat16, 1)],
)
def test_elsewhere_it_is_a_plain_linear_layer(monkeypatch, columns, dtype, rows):
    used = counted(monkeypatch)
    made = layer(6, columns, dtype)
    hidden = torch.ones(rows, columns, dtype=dtype)
    assert torch.equal(made(hidden), torch.nn.functional.linear(hidden, made.weight))
    assert not used


def test_a_step_of_a_loaded_draft_reads_all_its_matrices_in_eight_bits(monkeypatch, tmp_path):
    target = tiny_model("llama", hidden_size=32, intermediate_size=64).to(torch.bfloat16)
    save_draft(new_draft(target, torch.arange(0, 37, 2)), tmp_path / "draft.safetensors")
    draft = load_draft(target, tmp_path / "draft.safetensors")
    used = counted(monkeypatch)
    draft(torch.tensor([[1]]))
    assert len(used) == 2 * 7 + 1  # two layers of seven matrices, and the head
    draft(torch.tensor([[1, 2, 3, 4, 5]]))
    assert len(used) == 2 * 7 + 1
    assert not any(p.requires_grad for name, p in draft.named_parameters() if "proj" in name)
