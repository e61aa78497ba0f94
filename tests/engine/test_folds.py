"""Tensors whose elements lie so far apart that offsets pass 2**31: memory is held for these alone."""

import torch

from gradekit.engine.memory import Storage
from gradekit.inputs.spec import Input

STEP = (1 << 30) + 16
FAR = Input("float16", (3, 5), (STEP, 1))


def test_such_a_tensor_has_the_values_of_any_other_and_takes_as_much_memory_as_a_small_one() -> None:
    assert torch.equal(FAR.tensor(), Input("float16", (3, 5), (5, 1)).tensor()) and FAR.storage_size < 100


def test_kernels_find_its_elements_where_they_would_lie_and_nothing_between_or_beside_them() -> None:
    view = FAR.view(0)
    storage = Storage(0, torch.arange(2 * FAR.storage_size).to(torch.uint8), 0, fold=view.fold)
    index = torch.tensor([[row * STEP + column for column in range(5)] for row in range(3)])
    assert torch.equal(storage.places_of(index, 2), torch.arange(FAR.storage_size).as_strided((3, 5), view.in_memory.stride))
    beside = torch.tensor([-1, STEP - 1, STEP + (1 << 20), -(1 << 31), 3 * STEP, 1 << 40])
    found = storage.places_of(beside, 2)
    assert bool(((found < 0) | (found >= FAR.storage_size)).all())
