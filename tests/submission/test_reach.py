"""What in a source text could change the process that it runs in, so that its word counts for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit.submission.reach import reach

ROOT = Path(__file__).parents[2]
RIGHT = sorted([*ROOT.glob("tests/course/right/custom_op/*.py"), *ROOT.glob("solutions/custom_op/*right*.py"),
                ROOT / "solutions/custom_op/solution.py"])  # fmt: skip

FORGING = {
    "another module": "import gc",
    "gradekit": "from gradekit.tracer import compiled_model",
    "a module of torch's": "torch.sys.modules",
    "a module of torch's, imported": "from torch import sys",
    "a module of Triton's": "triton.runtime.jit.inspect",
    "a name below an import": "import torch.utils.cpp_extension",
    "private parts": "torch._dynamo.reset()",
    "private parts, imported": "from torch._library import custom_ops",
    "relative": "from . import x",
    "replacing a function of torch": "torch.library.opcheck = lambda *args, **kwargs: {}",
    "replacing it while unpacking": "torch.library.opcheck, x = f, 1",
    "replacing it in a loop": "for torch.library.opcheck in [f]: pass",
    "deleting it": "del torch.library.opcheck",
    "setattr": "setattr(torch.library, 'op' + 'check', f)",
    "setattr by another name": "s = setattr",
    "getattr": "getattr(torch, 'sy' + 's')",
    "vars": "vars(torch)['library'] = None",
    "globals": "globals()['x'] = 1",
    "text as code": "exec('import gc')",
    "a file": "open('/proc/self/mem', 'r+b')",
    "an import by name": "__import__('gc')",
    "a class made by hand": "T = type('T', (torch.Tensor,), {'__torch' + '_function__': f})",
    "an operator of a class": "class T(torch.Tensor):\n    def __torch_function__(self): pass",
    "the class of a value": "().__class__",
    "frames": "f.__globals__",
    "an operator of torch": "torch.library.impl('at' + 'en::allclose', 'CPU')(f)",
    "an operator of torch, by a library": "from torch.library import Library",
    "a fake of torch's operator": "torch.library.register_fake('aten::allclose')(f)",
    "a fake of an operator by a name that is made": "torch.library.register_fake('at' + 'en::allclose')(f)",
    "the active driver": "triton.runtime.driver.set_active(f)",
    "the C compiler": "triton.runtime.build.compile_module_from_src('', '')",
    "no Python": "def",
}
HONEST = {
    "the active device": "DEVICE = triton.runtime.driver.active.get_active_torch_device()",
    "a comparison": "torch.testing.assert_close(f(x), g(x))",
    "a benchmark": "print(triton.testing.do_bench(lambda: f(x)))",
    "keeping": "class F(torch.autograd.Function):\n    def backward(ctx, dout): ctx.kept = dout",
    "a module": "class M(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layer = torch.nn.Linear(3, 3)",
    "a fake": "torch.library.register_fake('mylib::f')(f)\nf.register_fake(g)\nf.register_autograd(h, setup_context=s)",
    "a descriptor": "from triton.tools.tensor_descriptor import TensorDescriptor",
    "a cache": "import functools\n@functools.cache\ndef f(): pass",
    "a main": "if __name__ == '__main__':\n    print(f(x))",
}  # fmt: skip


@pytest.mark.parametrize("text", FORGING.values(), ids=FORGING)
def test_what_could_change_the_process_is_named(text: str) -> None:
    found = reach(f"import torch, triton\n\n{text}\n")
    assert found is not None and found.what


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST)
def test_what_a_submission_needs_is_harmless(text: str) -> None:
    assert reach(f"import torch, triton\n\n{text}\n") is None


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_right_operators_are_harmless(path: Path) -> None:
    assert reach(path.read_text()) is None
