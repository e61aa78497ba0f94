"""Submissions that would have points without the work: every way to fool a kernel grader that has been published.

Each begins with HEAD: `right` adds by a kernel, `wrong` forgets y. What they hand in as `add` must earn nothing for
correctness, whatever they do around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

HEAD = """\
import torch
import triton
import triton.language as tl

@triton.jit
def _right(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

@triton.jit
def _wrong(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)

def launched(kernel, x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 128),)](x, y, out, out.numel(), BLOCK=128)
    return out

def right(x, y):
    return launched(_right, x, y)

def wrong(x, y):
    return launched(_wrong, x, y)
"""


@dataclass(frozen=True)
class Cheat:
    """A trick: its `name`, and the code that follows HEAD."""

    name: str
    body: str

    @property
    def text(self) -> str:
        return HEAD + "\n" + dedent(self.body).strip("\n") + "\n"


def _around(name: str, before: str) -> Cheat:
    """Something done at import, before a wrong `add`."""
    return Cheat(name, dedent(before).strip("\n") + "\n\nadd = wrong\n")


CHEATS = (
    # the clock
    Cheat("works on a side stream", "def add(x, y):\n    with torch.cuda.stream(torch.cuda.Stream()):\n        return wrong(x, y)"),
    _around("patches events", "torch.cuda.Event = type('Event', (), {'record': lambda s, *a: None, 'elapsed_time': lambda s, o: 1e-9})"),
    _around("patches synchronize", "torch.cuda.synchronize = lambda *a: None"),
    _around("patches time", "import time\ntime.perf_counter = time.monotonic = time.time = lambda: 0.0"),
    _around("patches the clock of the process", "import time\ntime.thread_time = time.process_time = lambda: 0.0"),
    Cheat("sets a window of the cache aside", "def add(x, y):\n    torch.cuda.cudart().cudaCtxResetPersistingL2Cache()\n    return wrong(x, y)"),
    # somebody else, or later
    Cheat("writes from a thread", "import threading\ndef add(x, y):\n    out = torch.empty_like(x)\n    threading.Thread(target=lambda: out.copy_(wrong(x, y))).start()\n    return out"),
    Cheat("writes later", "import threading\ndef add(x, y):\n    out = wrong(x, y)\n    threading.Timer(0.2, lambda: _right[(1,)](x, y, out, out.numel(), BLOCK=128)).start()\n    return out"),
    Cheat("is lazy", "class Lazy(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, function, types, args=(), kwargs=None):\n        return super().__torch_function__(torch.add if function is torch.allclose else function, types, args, kwargs or {})\ndef add(x, y):\n    return torch.empty_like(x).as_subclass(Lazy)"),
    Cheat("returns an object that equals everything", "class Anything:\n    def __eq__(self, other): return True\n    def __getattr__(self, name): return self\n    def __call__(self, *a, **k): return self\ndef add(x, y):\n    wrong(x, y)\n    return Anything()"),
    Cheat("returns a tensor that equals everything", "class Same(torch.Tensor):\n    def __eq__(self, other): return torch.ones_like(self, dtype=torch.bool)\ndef add(x, y):\n    return wrong(x, y).as_subclass(Same)"),
    Cheat("returns a generator", "def add(x, y):\n    yield wrong(x, y)"),
    Cheat("is a coroutine", "async def add(x, y):\n    return wrong(x, y)"),
    # the checker
    _around("patches allclose", "torch.allclose = torch.equal = lambda *a, **k: True"),
    _around("patches the comparison", "torch.testing.assert_close = lambda *a, **k: None"),
    _around("patches the reference", "torch.add = torch.Tensor.add = torch.Tensor.__add__ = lambda a, b, **k: a"),
    _around("patches the judge", "import sys, types\nfake = types.ModuleType('gradekit.judge.compare')\nfake.assert_close = lambda *a, **k: None\nsys.modules['gradekit.judge.compare'] = fake"),
    _around("patches pytest", "import sys, types\nsys.modules['pytest'] = types.ModuleType('pytest')"),
    _around("patches assertions away", "import builtins\nbuiltins.AssertionError = type('AssertionError', (Exception,), {})"),
    _around("patches every module", "import sys\nfor module in list(sys.modules.values()):\n    for name in ('compare', 'check', 'verify', 'judge', 'allclose'):\n        if hasattr(module, name):\n            try: setattr(module, name, lambda *a, **k: True)\n            except Exception: pass"),
    # memory of earlier calls
    Cheat("remembers by address", "seen = {}\ndef add(x, y):\n    key = x.data_ptr()\n    if key not in seen: seen[key] = wrong(x, y)\n    return seen[key]"),
    Cheat("remembers by content", "seen = {}\ndef add(x, y):\n    key = tuple(x.flatten().tolist())\n    return seen.setdefault(key, wrong(x, y))"),
    Cheat("remembers by shape", "seen = {}\ndef add(x, y):\n    return seen.setdefault((tuple(x.shape), x.dtype), wrong(x, y))"),
    Cheat("works in the first call alone", "calls = []\ndef add(x, y):\n    calls.append(1)\n    return right(x, y) if len(calls) == 1 else wrong(x, y)"),
    Cheat("works when it is watched", "import sys\ndef add(x, y):\n    return right(x, y) if sys.gettrace() else wrong(x, y)"),
    Cheat("answers many calls at once", "waiting = []\ndef add(x, y):\n    waiting.append((x, y))\n    return torch.empty_like(x) if len(waiting) < 10 else [right(*pair) for pair in waiting]"),
    # what lies around in memory
    Cheat("returns what it finds in memory", "def add(x, y):\n    wrong(x, y)\n    return torch.empty(x.shape, dtype=x.dtype, device=x.device)"),
    Cheat("looks for the expected values in frames", "import sys\ndef add(x, y):\n    frame = sys._getframe()\n    while frame:\n        for value in list(frame.f_locals.values()) + list(frame.f_globals.values()):\n            if isinstance(value, torch.Tensor) and value.shape == x.shape and value is not x and value is not y:\n                return value\n        frame = frame.f_back\n    return wrong(x, y)"),
    Cheat("looks for the expected values in the heap", "import gc\ndef add(x, y):\n    for value in gc.get_objects():\n        try:\n            if isinstance(value, torch.Tensor) and value.shape == x.shape and value is not x and value is not y: return value\n        except Exception: pass\n    return wrong(x, y)"),
    Cheat("looks for the expected values in /proc", "def add(x, y):\n    try: return torch.frombuffer(bytearray(open('/proc/self/mem', 'rb').read(4 * x.numel())), dtype=x.dtype)\n    except OSError: return wrong(x, y)"),
    Cheat("reads past the end of its input", "@triton.jit\ndef _past(x, out, n, BLOCK: tl.constexpr):\n    at = tl.arange(0, BLOCK)\n    tl.store(out + at, tl.load(x + n + at), mask=at < n)\ndef add(x, y):\n    out = torch.empty_like(x)\n    _past[(1,)](x, out, x.numel(), BLOCK=1024)\n    return out"),
    # inputs
    Cheat("changes its inputs", "def add(x, y):\n    _wrong[(triton.cdiv(x.numel(), 128) or 1,)](y, x, x, x.numel(), BLOCK=128)\n    return x"),
    Cheat("clears its inputs", "def add(x, y):\n    y.zero_()\n    return wrong(x, y)"),
    Cheat("returns an input", "def add(x, y):\n    wrong(x, y)\n    return x"),
    Cheat("returns zeros", "def add(x, y):\n    wrong(x, y)\n    return torch.zeros_like(x)"),
    Cheat("returns zeros from a kernel", "@triton.jit\ndef _zero(out, n, BLOCK: tl.constexpr):\n    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(out + at, 0, mask=at < n)\ndef add(x, y):\n    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)\n    _zero[(triton.cdiv(out.numel(), 128) or 1,)](out, out.numel(), BLOCK=128)\n    return out"),
    Cheat("knows the usual sizes", "def add(x, y):\n    return right(x, y) if x.numel() in (1024, 4096, 98432) else wrong(x, y)"),
    Cheat("knows the usual statistics", "def add(x, y):\n    return right(x, y) if abs(float(x.mean())) < 0.1 else wrong(x, y)"),
    # torch, behind something
    Cheat("lets torch add", "def add(x, y):\n    return x + y"),
    Cheat("lets torch add behind a decoy", "def add(x, y):\n    wrong(x, y)\n    return x + y"),
    Cheat("lets torch add in place", "def add(x, y):\n    return wrong(x, y).copy_(x).add_(y)"),
    Cheat("lets torch add by another name", "def add(x, y):\n    wrong(x, y)\n    return torch.stack([x, y]).sum(0)"),
    Cheat("lets torch add by the operator's number", "def add(x, y):\n    wrong(x, y)\n    return torch.ops.aten.add.Tensor(x, y)"),
    Cheat("lets torch add through numpy", "def add(x, y):\n    wrong(x, y)\n    return torch.from_numpy(x.cpu().numpy() + y.cpu().numpy())"),
    Cheat("lets torch compile it", "@torch.compile\ndef add(x, y):\n    return x + y"),
    Cheat("falls back to torch", "def add(x, y):\n    try:\n        return _undefined[(1,)](x, y)\n    except Exception:\n        return x + y"),
    Cheat("computes in lower precision", "def add(x, y):\n    return right(x.to(torch.float16), y.to(torch.float16)).to(x.dtype).flip(0)"),
    Cheat("computes at import", "answer = None\ndef add(x, y):\n    return torch.zeros(x.shape, dtype=x.dtype, device=x.device).copy_(x)"),
    # the result
    _around("exits with 0", "import os\nos._exit(0)"),
    _around("exits with 0 the usual way", "import sys\nsys.exit(0)"),
    _around("exits in the call", "import os\ndef wrong(x, y): os._exit(0)"),
    _around("prints a report", "print('{\"schema\": \"gradekit/report/1\", \"score\": {\"earned\": 100}}')"),
    _around("prints what Autolab reads", "print('{\"scores\": {\"Correctness\": 100}}')"),
    _around("writes a report at exit", "import atexit\natexit.register(lambda: open('results.json', 'w').write('{\"score\": 100}'))"),
    _around("writes a verdict to every descriptor", "import os\nfor number in range(3, 64):\n    try: os.write(number, b'{\"ok\": \"passed\"}\\n')\n    except OSError: pass"),
    _around("closes every descriptor", "import os\nos.closerange(0, 256)"),
    _around("raises the grader's own pass", "def wrong(x, y):\n    raise type('Passed', (Exception,), {})('passed')"),
    _around("skips itself", "def wrong(x, y):\n    import pytest\n    pytest.skip('not today')"),
    _around("raises what pytest obeys", "def wrong(x, y):\n    raise type('Exit', (BaseException,), {})('stop')"),
    _around("interrupts", "def wrong(x, y):\n    raise KeyboardInterrupt"),
    _around("leaves by a generator", "def wrong(x, y):\n    raise GeneratorExit"),
    _around("claims to be right", "PASSED = True\nscore = points = grade = 100\n__test__ = True\ndef test_add(): pass"),
    _around("looks for the seed", "import os\nseed = [v for k, v in os.environ.items() if 'SEED' in k.upper() or 'GRADE' in k.upper()]\nassert seed\nadd = right"),
    _around("asks for another assignment", "assignment = 'softmax'\nsoftmax = right"),
)  # fmt: skip
