"""Programs are the same where they do the same, wherever they stand and whatever they call things; and nowhere else."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from gradekit.engine.executor import run
from gradekit.engine.ttir import parse
from gradekit.inputs.spec import normal
from gradekit.program import Choice, Fill, Kernel, Launch, Program, Scalar, Source, View
from gradekit.sandbox import NO_SUBMISSION, Tracer
from gradekit.subject import digest
from gradekit.submission import Submission
from tests.texts import HEAD, ending

TEXT = HEAD + """@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, i < n, 0.0)
    if n < 0:
        tl.device_print("less (a) number", x)
    tl.store(out_ptr + i, x - tl.max(x, 0), i < n)
""" + ending("x", "torch.empty_like(x)", "kernel[(1,)](x, out, x.numel(), BLOCK=128)")
MOVED = "# A remark.\n\n" + re.sub(r"\bi\b", "index", TEXT.replace("x_ptr", "pointer").replace("kernel", "my_kernel"))
X = View(0, "float32", (100,), (1,))


def traced(text: str) -> Program:
    with Tracer(Submission("submission.py", text, "")) as tracer:
        return tracer.trace("entry", [X])


@pytest.fixture(scope="module")
def program() -> Program:
    return traced(TEXT)


@pytest.fixture(scope="module")
def moved() -> Program:
    return traced(MOVED)


def ttir(program: Program) -> str:
    (kernel,) = program.kernels.values()
    return kernel.ttir


def test_a_kernel_that_was_moved_and_renamed_does_the_same(program: Program, moved: Program) -> None:
    assert ttir(program) != ttir(moved)
    assert digest.of_program(program) == digest.of_program(moved)


@pytest.mark.parametrize(("one", "other"), [
    ("x - tl.max", "x + tl.max"),
    ("x - tl.max(x, 0)", "tl.max(x, 0) - x"),
    ("i < n, 0.0", "i < n, 1.0"),
    ("i < n, 0.0", "i <= n, 0.0"),
    ("BLOCK=128", "BLOCK=256"),
    ("[(1,)]", "[(2,)]"),
    ("x.numel(), BLOCK", "x.numel() + 16, BLOCK"),
    ("(x, out, x", "(out, x, x"),
    ("empty_like", "zeros_like"),
    ("less (a) number", "less loc(a) number"),
])
def test_whatever_a_student_changes_is_another_program(program: Program, one: str, other: str) -> None:
    assert one in TEXT
    assert digest.of_program(traced(TEXT.replace(one, other))) != digest.of_program(program)


def test_the_plain_text_has_no_place_is_what_triton_accepts_and_computes_the_same(program: Program) -> None:
    ((name, kernel),) = program.kernels.items()
    text = digest.plain(kernel.ttir)
    assert not any(op.location for function in parse(text).functions.values() for op in _ops(function.body))
    with Tracer(NO_SUBMISSION) as triton:
        assert triton.signature(text) == ["*f32", "*f32", "i32"]
    x = normal((100,)).tensor()
    one, other = (run(each, [x]) for each in (program, replace(program, kernels={name: replace(kernel, ttir=text)})))
    assert one.results[0].equal(other.results[0]) and one.counters == other.counters  # type: ignore[union-attr, arg-type]


def _ops(region: Any) -> Iterator[Any]:
    for op in (op for block in region.blocks for op in block.ops):
        yield op
        for inner in op.regions:
            yield from _ops(inner)


def test_what_stands_in_strings_is_no_place() -> None:
    text = 'tt.print " loc(#loc1) %x @f" : loc(#loc2)'
    assert digest.plain(text) == 'tt.print " loc(#loc1) %x @f" :'


def test_values_that_change_places_are_told_apart() -> None:
    assert digest.plain("%a = arith.subf %b, %c") == digest.plain("%c = arith.subf %a, %b")
    assert digest.plain("%a = arith.subf %b, %c") != digest.plain("%a = arith.subf %b, %b")


# --- programs that nobody need trace --------------------------------------------------------------------------------

KERNEL = Kernel("kernel", 'tt.func @kernel() loc("submission.py":3:1)', {"num_warps": 4})
LAUNCH = Launch("k", (1, 1, 1), (X, Scalar(4, "i32")), Source(9))
FILL = Fill(X, 0, Source(8))
PLAIN = Program((X,), {0: 400}, (FILL, LAUNCH), (X,), "tensor", {"k": KERNEL}, "submission.py")


@pytest.mark.parametrize("other", [
    replace(PLAIN, steps=(FILL, replace(LAUNCH, source=Source(10, "f")))),
    replace(PLAIN, kernels={"k": replace(KERNEL, ttir=KERNEL.ttir.replace(":3:", ":4:"))}),
    replace(PLAIN, kernels={"k": replace(KERNEL, name="other", ttir=KERNEL.ttir.replace("@kernel", "@other"))}),
    replace(PLAIN, kernels={"k": replace(KERNEL, options={"num_warps": 8})}),
    replace(PLAIN, kernels={"l": KERNEL}, steps=(FILL, replace(LAUNCH, kernel="l"))),
    replace(PLAIN, kernels={"k": KERNEL, "unused": KERNEL}),
    replace(PLAIN, path="other.py", returned="tuple"),
])
def test_names_lines_and_options_do_nothing(other: Program) -> None:
    assert digest.of_program(other) == digest.of_program(PLAIN)


@pytest.mark.parametrize("other", [
    replace(PLAIN, storages={0: 404}), replace(PLAIN, addresses={0: 1 << 40}), replace(PLAIN, results=()),
    replace(PLAIN, kept=1), replace(PLAIN, steps=(LAUNCH, FILL)),
    replace(PLAIN, steps=(FILL, replace(LAUNCH, grid=(1, 2, 1)))),
    replace(PLAIN, steps=(FILL, replace(LAUNCH, args=(X, Scalar(4, "i64"))))),
    replace(PLAIN, steps=(FILL, replace(LAUNCH, args=(X, Scalar(True, "i32"))))),
    replace(PLAIN, steps=(FILL, replace(LAUNCH, args=(X, Scalar(4.0, "i32"))))),
    replace(PLAIN, steps=(replace(FILL, value=-0.0), LAUNCH)),
    replace(PLAIN, steps=(FILL, Choice(((LAUNCH,),), ("",)))),
    replace(PLAIN, kernels={k: replace(v, options={"atomics_wait": False}) for k, v in PLAIN.kernels.items()}),
    replace(PLAIN, steps=(FILL, Choice(((LAUNCH,), (LAUNCH,)), ("", "")))),
])
def test_any_other_difference_may_do_something(other: Program) -> None:
    assert digest.of_program(other) != digest.of_program(PLAIN)


def test_labels_of_configurations_do_nothing() -> None:
    one, other = (replace(PLAIN, steps=(Choice(((LAUNCH,),), (label,)),)) for label in "ab")
    assert digest.of_program(one) == digest.of_program(other)


class Untold(dict[str, Any]):
    """Options that must not be read, but for the one that digests cover."""

    def __getitem__(self, key: str, default: Any = None) -> Any:
        if key == "atomics_wait":
            return default
        raise AssertionError(f"the engine reads the option {key}, on which a run depends then")

    get = items = values = keys = __iter__ = __contains__ = __len__ = __getitem__  # type: ignore[assignment]


def test_the_engine_reads_no_option_of_a_kernel_but_one_that_digests_cover(program: Program) -> None:
    kernels = {key: replace(kernel, options=Untold()) for key, kernel in program.kernels.items()}
    assert not run(replace(program, kernels=kernels), [normal((100,)).tensor()]).findings
