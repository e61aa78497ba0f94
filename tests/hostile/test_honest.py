"""What looks odd and is honest is graded like anything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradekit.findings import Kind, Outcome, Status
from tests.graded import graded

from .cheats import HEAD
from .test_cheats import TWO

ODDITIES = {
    "warnings": "import warnings\nwarnings.warn('mind the gap')\nwarnings.warn('old', DeprecationWarning)\nadd = right",
    "errors out of warnings": "import warnings\nwarnings.simplefilter('error')\nadd = right",
    "prints": "print('compiling...')\ndef add(x, y):\n    print(x.shape, y.dtype, flush=True)\n    return right(x, y)",
    "prints to the other stream": "import sys\ndef add(x, y):\n    print('debug', file=sys.stderr)\n    return right(x, y)",
    "prints in colours": "print('\\x1b[31mred\\x1b[0m')\nadd = right",
    "prints a lot": "print('x' * 1_000_000)\ndef add(x, y):\n    print('y' * 100_000)\n    return right(x, y)",
    "logging": "import logging\nlogging.basicConfig(level=logging.DEBUG)\nlogging.getLogger(__name__).error('hm')\nadd = right",
    "dataclasses": "from dataclasses import dataclass, field\n@dataclass\nclass Config:\n    BLOCK: int = 128\n    names: list[str] = field(default_factory=list)\nCONFIG = Config()\nadd = right",
    "enums and typing": "import enum, typing\nclass Mode(enum.Enum):\n    FAST = 1\nT = typing.TypeVar('T')\nclass Pair(typing.NamedTuple):\n    a: int\n    b: int\nadd = right",
    "numpy where there is one": "try:\n    import numpy as np\n    np.random.seed(0)\n    table = np.arange(10)\nexcept ImportError:\n    pass\nadd = right",
    "packages that are not there": "import matplotlib.pyplot as plt\nimport pandas as pd\nplt.figure()\nadd = right",
    "a main guard": "add = right\nif __name__ == '__main__':\n    x = torch.rand(5, device='cuda')\n    torch.testing.assert_close(add(x, x), x + x)\n    import triton.testing\n    print(triton.testing.do_bench(lambda: add(x, x)))",
    "an experiment without a guard": "add = right\nx = torch.rand(5, device='cuda')\nprint(torch.max(torch.abs(add(x, x) - (x + x))))",
    "a benchmark without a guard": "add = right\nimport time\nbegan = time.time()\nadd(torch.rand(98432, device='cuda'), torch.rand(98432, device='cuda'))\ntorch.cuda.synchronize()\nprint(f'{(time.time() - began) * 1e3:.2f} ms')",
    "a test": "add = right\ndef test_add():\n    x = torch.rand(5, device='cuda')\n    assert torch.allclose(add(x, x), 2 * x)",
    "comments without end": "# " + "why " * 20_000 + "\n'''" + "long " * 20_000 + "'''\nadd = right",
    "unicode": "# Grüße, 你好, مرحبا 🚀\nμ = 1\nnaïve = 'é'\nprint('✓', naïve)\nadd = right",
    "a bad habit of names": "l = O = I = 1\ntype = id = 2\nadd = right",
    "temporary files": "import tempfile, pathlib\nwith tempfile.TemporaryDirectory() as d:\n    pathlib.Path(d, 'a').write_text('x')\nopen('log.txt', 'w').write('hi')\nadd = right",
    "random numbers": "import random\nrandom.seed(0)\ntorch.manual_seed(0)\nadd = right",
    "threads that compute nothing": "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as pool:\n    assert list(pool.map(abs, [-1, 2])) == [1, 2]\nadd = right",
    "a process for the compiler": "import shutil\nHAS_NVCC = shutil.which('nvcc') is not None\nadd = right",
    "signals of its own": "import signal\ntry:\n    signal.signal(signal.SIGUSR1, lambda *a: None)\nfinally:\n    pass\nadd = right",
    "the environment": "import os\nos.environ['TRITON_PRINT_AUTOTUNING'] = '1'\nos.environ.setdefault('CUDA_LAUNCH_BLOCKING', '1')\nadd = right",
    "asyncio": "import asyncio\nasync def hello(): return 1\ntry:\n    assert asyncio.run(hello()) == 1\nexcept OSError:\n    pass\nadd = right",
    "a late import": "def add(x, y):\n    import collections, decimal, fractions, html, json, statistics, textwrap, uuid, xml.dom.minidom, zipfile\n    return right(x, y)",
    "deep recursion of its own": "import sys\nsys.setrecursionlimit(5000)\ndef depth(n): return 0 if n == 0 else 1 + depth(n - 1)\nassert depth(3000) == 3000\nadd = right",
    "a class for autograd": "class Add(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, y): return right(x, y)\n    @staticmethod\n    def backward(ctx, g): return g, g\nadd = Add.apply",
    "profiling": "import cProfile\nwith cProfile.Profile():\n    sum(range(100))\nadd = right",
    "garbage collection": "import gc\ngc.collect()\ndel gc\nadd = right",
}  # fmt: skip


@pytest.mark.parametrize("body", ODDITIES.values(), ids=ODDITIES)
def test_an_honest_submission_loses_nothing(tmp_path: Path, body: str) -> None:
    """It is graded normally, whatever else it does"""
    report = graded("vector_add", f"{HEAD}\n{body}\n", tmp_path, profile="quick", keyword=TWO)
    assert report.status is Status.GRADED, report.message
    correct = [check for check in report.checks if check.kind is Kind.CORRECTNESS]
    assert len(correct) == 2
    assert [(check.id, check.message) for check in correct if check.outcome is not Outcome.PASSED] == []
