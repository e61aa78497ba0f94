"""Each patch of gradekit.compat beside what happens without it, as JSON: a process of its own, which then ends."""

import json
import sys
from typing import Any

import torch
import triton
import triton.language as tl

from gradekit.compat import torch as of_torch
from gradekit.compat import triton as of_triton

FOUND: dict[str, Any] = {}


@triton.jit
def early(x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(x + tl.arange(0, BLOCK), n)


def jit_functions() -> None:
    of_triton.watch_jit_functions()

    @triton.jit
    def late(x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        tl.store(x + tl.arange(0, BLOCK), n)

    FOUND["watched"] = [function.fn.__name__ for function in of_triton.jit_functions()]
    of_triton.parse_once()
    FOUND["parsed once"] = late.parse() is late.parse()


@triton.jit
def persistent(x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    for start in tl.range(tl.program_id(0), n, tl.num_programs(0)):
        at = start * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + at, tl.load(x + at))


@triton.jit
def carrying(x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    total = 0.0
    for start in range(n):
        total += tl.sum(tl.load(x + start * BLOCK + tl.arange(0, BLOCK)), 0)
    tl.store(x, total)


@triton.jit
def lagging(x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Triton carries `now` alone, for `before` is what `now` was before the loop in its first visit."""
    now = tl.load(x)
    before = now
    for start in range(n):
        before = now
        now = tl.load(x + start * BLOCK)
    tl.store(x, before + now)


def loops() -> None:
    """The kernels' texts and how many statements are visited for them, as Triton does it and with our patch."""
    visit, visited = of_triton.CodeGenerator.visit_Assign, list[Any]()
    of_triton.CodeGenerator.visit_Assign = lambda self, node: (visited.append(node), visit(self, node))[1]
    for when in ("twice", "once"):
        for kernel in (persistent, carrying, lagging):
            visited.clear()
            source = of_triton.ASTSource(kernel, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 32})
            FOUND[f"{kernel.__name__} {when}"] = [of_triton.lower(source, {})[0], len(visited)]
        of_triton.visit_loops_once()
    of_triton.CodeGenerator.visit_Assign = visit


class Compiled:
    """A kernel as Triton launches it."""

    function = packed_metadata = module = None

    def _init_handles(self) -> None:
        pass

    def launch_metadata(self, grid: Any, stream: Any, *args: Any) -> None:
        pass

    def run(self, x: Any, y: Any, z: Any, stream: Any, function: Any, *more: Any) -> None:
        FOUND["launched"] = [[x, y, z], [str(arg) for arg in more[-3:]]]


class Card:
    """A driver of a card that is not there."""

    def get_current_target(self) -> Any:
        return of_triton.TARGET

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def compiled(source: Any, **options: Any) -> Compiled:
    FOUND["compiled"] = [source.fn.__name__, dict(source.signature)]
    return Compiled()


def launches() -> None:
    """Triton binds the arguments, and asks our driver, our compiler and our kernel."""
    of_triton.use_driver(Card())
    FOUND["target"] = of_triton.active_target().arch
    of_triton.use_compiler(compiled)
    early[(3,)](torch.empty(32, device="meta"), 17, BLOCK=32)


def dynamo() -> None:
    of_torch.keep_dynamo_out()

    @torch.library.custom_op("gradekit_compat::thrice", mutates_args=())
    def thrice(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    FOUND["thrice"] = thrice(torch.ones(1)).tolist()
    code = of_torch.custom_operator(torch.ops.gradekit_compat.thrice.default)
    FOUND["code"] = code and code(torch.ones(2)).tolist()
    FOUND["dynamo after"] = "torch._dynamo" in sys.modules
    of_torch.never_wrap_triton()
    FOUND["wraps"] = [torch.library.wrap_triton(early) is early]
    with of_torch.wrapping_triton():
        FOUND["wraps"].append(torch.library.wrap_triton(early) is early)


if __name__ == "__main__":
    jit_functions()
    loops()
    launches()
    dynamo()
    print(json.dumps(FOUND))
