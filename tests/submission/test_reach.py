"""What in a source text could change the process that it runs in, so that its word counts for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit.submission.reach import reach
from tests import right

ROOT = Path(__file__).parents[2]
OWN = sorted(ROOT.glob("solutions/custom_op/*right*.py"))
RIGHT = [*right.files("custom_op"), *OWN, ROOT / "solutions/custom_op/solution.py"]

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
    "attributes by functools.update_wrapper": 'import functools\nclass N:\n    def __init__(self):\n        self.opcheck=fake\nfunctools.update_wrapper(torch.library,N())',
    "attributes by functools.wraps": 'from functools import wraps\nclass N:\n    def __init__(self):\n        self.opcheck=fake\nwraps(N())(torch.library)',
    "names of a module by an enumeration": "import enum\nE=enum.Enum('E',{'opcheck':1},module='torch.library')\nenum.global_enum(E)",
    "an annotation as code": 'import typing\nclass N:\n    x:\'__import__("os")\'\ntyping.get_type_hints(N)',
    "a reference as code": "from typing import ForwardRef, get_type_hints\nForwardRef('1')",
    "a generator's frame": "def g():\n    yield\ng().gi_frame.f_builtins['setattr'](torch.library,'opcheck',fake)",
    "a private name in a pattern": "from collections.abc import Callable\nmatch fake:\n    case Callable(__globals__=g):\n        g['__builtins__']",
    "the names that a kernel can see": "import triton\n@triton.jit\ndef k(x): pass\nk.get_capture_scope()['__builtins__']",
    "a module called self": 'self=torch.library\nself.opcheck=fake',
    "a module called ctx": 'for ctx in [torch.library]:\n    ctx.opcheck=fake',
    "a method of something else": 'class N:\n    def put(self):\n        self.opcheck=fake\nN.put(torch.library)',
    "__init__ of something else": 'class N:\n    def __init__(self):\n        self.opcheck=fake\nN.__init__(torch.library)',
    "torch's callback, called": 'def setup_context(ctx,i,o):\n    ctx.opcheck=fake\nsetup_context(torch.library,1,2)',
    "an autograd function's forward, called": 'class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx,x):\n        ctx.opcheck=fake\nF.forward(torch.library,1)',
    "another name for a registration": "from torch.library import register_fake as rf\nrf(''.join(['at','en::gelu']))(fake)",
    "an operator's implementation": 'torch.ops.aten.gelu.default.py_impl(torch._C.DispatchKey.Meta)(fake)',
    "an operator's table": 'torch.ops.aten.gelu.default.py_kernels.clear()',
    "a class made by hand, as a dataclass": "import dataclasses\ndataclasses.make_dataclass('X',['a'],namespace={})",
    "a decorator that calls": 'def steal(f):\n    f(torch.library,1,2)\n    return f\n@steal\ndef setup_context(ctx,i,o):\n    ctx.opcheck=fake',
    "an attribute as a loop's target": 'def f(ctx):\n    return [0 for ctx.opcheck in [fake]]\nf(torch.library)',
    "an attribute, added to": 'def f(self):\n    self.opcheck+=fake\nmap(f,[torch.library])',
    "ctx as any number of arguments": 'def f(*ctx):\n    ctx.a=1',
    "ctx as another thing": 'def setup_context(ctx,i,o):\n    ctx=torch.library\n    ctx.opcheck=fake',
    "ctx from a with": 'def setup_context(ctx,i,o):\n    with i as ctx:\n        ctx.opcheck=fake',
    "torch.library under another name": "import torch.library as L\nL.register_fake(''.join(['at','en::gelu']))(fake)",
    "a registration as a value": "f=torch.library.register_fake\nf(''.join(['at','en::gelu']))(fake)",
    "a class of torch as a dataclass": 'from dataclasses import dataclass\ndataclass(torch.Tensor)',
    "dataclass as a value": 'import dataclasses\nf=dataclasses.dataclass\nf(torch.Tensor)',
    "super in a class method": 'class N:\n    def __init__(self):\n        self.opcheck=fake\nclass P(N):\n    @classmethod\n    def go(cls):\n        super().__init__(torch.library)\nP.go()',
    "a property's setter": 'class N:\n    def put(self,v):\n        self.opcheck=v\n    x=property(None,put)',
    "forward, called by a default in its class": 'class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx,x):\n        ctx.opcheck=fake\n    def g(y=forward(torch.library,1)):\n        pass',
    "forward, which is a global": 'class F(torch.autograd.Function):\n    global forward\n    @staticmethod\n    def forward(ctx,x):\n        ctx.opcheck=fake\ndef g():\n    forward(torch.library,1)',
    "forward, and a function of that name": 'class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx,x):\n        ctx.opcheck=fake\ndef forward(ctx):\n    ctx.a=1\ndef g():\n    forward(torch.library)',
    "forward, called in its class": 'class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx,x):\n        ctx.opcheck=fake\n    y=forward(torch.library,1)',
    "TorchScript": 'torch.jit.script(fake)',
    "TorchScript, imported": 'from torch import jit',
    "replacing it with an annotation": 'torch.library.opcheck: int = fake',
    "ctx as an exception": 'def f(ctx):\n    try:\n        pass\n    except E as ctx:\n        ctx.a=1',
    "a registration of one's own": 'def register_autograd(f):\n    f(torch.library)\n',
    "a lambda's ctx": 'def setup_context(ctx,i,o):\n    (lambda ctx: [0 for ctx.opcheck in [1]])(torch.library)',
    "a function within a function": 'def forward(ctx):\n    def f(ctx):\n        ctx.a=1\n    f(torch.library)',
    "torch's callback as a default": 'def setup_context(ctx,i,o):\n    ctx.a=1\ndef g(f=setup_context):\n    f(torch.library,1,2)',
    "torch's callback in a list": 'def setup_context(ctx,i,o):\n    ctx.a=1\nop.register_autograd(fake, setup_context=[setup_context][0])',
    "a static method, called": 'class C:\n    @staticmethod\n    def setup(ctx):\n        ctx.opcheck=fake\nC.setup(torch.library)',
    "a static method, called in its class": 'class C:\n    @staticmethod\n    def setup(ctx):\n        ctx.opcheck=fake\n    setup(torch.library)',
    "a static method of a class with a base": 'class C(B):\n    @staticmethod\n    def setup(ctx):\n        ctx.opcheck=fake',
    "a static method that Python calls": 'class C:\n    @staticmethod\n    def __call__(ctx):\n        ctx.opcheck=fake\nC()(torch.library)',
    "a name in a class": 'class C:\n    back=os.sep\ntorch.library.register_autograd(C.back, fake)',
    "a name in a class that a method has too": 'class C:\n    @staticmethod\n    def back(x):\n        return x\n    back="aten::gelu"\ntorch.library.register_autograd(C.back, fake)',
    "a static method that is made a name": 'class C:\n    @staticmethod\n    @named\n    def back(x):\n        return x\ntorch.library.register_autograd(C.back, fake)',
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
    "a dataclass": "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass C:\n    n: int",
    "a callback of torch's": "def setup_context(ctx, inputs, output):\n    ctx.n, ctx.p = 1, 2\n"
    "op.register_autograd(backward, setup_context=setup_context)",
    "a callback of torch's, by name": "def setup(ctx, inputs, output):\n    ctx.n = 1\n"
    "torch.library.register_autograd('mylib::f', back, setup_context=setup)",
    "a callback of torch's in a class": "class C:\n    @staticmethod\n    def setup(ctx, inputs, output):\n        ctx.n = 1\n"
    "    @staticmethod\n    def back(ctx, dy):\n        return dy\nop.register_autograd(C.back, setup_context=C.setup)",
    "an autograd function beside a function of the same name": "def forward(x):\n    return x\nclass F(torch.autograd.Function):\n"
    "    @staticmethod\n    def forward(ctx, x):\n        ctx.n = 1\n        return forward(x)\n",
    "an autograd function": "class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
    "        ctx.shape = x.shape\n    @staticmethod\n    def backward(ctx, dy):\n        return dy.view(ctx.shape)\n"
    "def f(x):\n    return F.apply(x)",
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
