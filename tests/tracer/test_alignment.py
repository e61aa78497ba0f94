"""A kernel that was compiled for one alignment has the text for every other that Triton would give it by itself."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gradekit import sandbox
from gradekit.assignment import discover
from gradekit.course.mistakes import bases
from gradekit.program import ALIGNMENT, Argument, Launch, Program, Scalar, View, encode
from gradekit.submission import read
from tests import right, zygote
from tests.beside import beside
from tests.graded import grade

from . import styles
from .helpers import only, submission, tensor, traced

ROOT = Path(__file__).parents[2]
HALVES = [tensor(number, 1, 2, 128, 64, dtype="float16") for number in range(3)]
ASSIGNMENTS = discover(ROOT / "assignments")

ASKS = """
def entry(x):
    out = torch.empty_like(x)
    copy_kernel[(1,)](x, out, x.numel(), BLOCK=128)
    return out
"""


def compared(*arguments: str, given: Any = None) -> list[dict[str, Any]]:
    """What tests/tracer/alignments.py says: of the corpus, or of each submission in `given`."""
    words = [Path(__file__).with_name("alignments.py"), *arguments]
    done = zygote.ran(words, environment=sandbox.clean_environment("/tmp"), told=json.dumps(given))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"compared"')]


def call(entry: str, *args: Argument) -> dict[str, Any]:
    """What the tracer is asked for the program of a call."""
    return {"do": "trace", "entry": entry, "args": [encode(arg) for arg in args], "multiprocessors": 132, "turn": 0}


@pytest.mark.parametrize(("step", "least"), [("24", 40), pytest.param("1", 1000, marks=pytest.mark.slow)])
def test_kernels_of_the_corpus_have_the_same_text_both_ways(step: str, least: int) -> None:
    """Every construct of the front end, in four sets of aligned arguments: a sample each time"""
    (found,) = compared("corpus", step)
    assert found["compared"] > least and (found["different"], found["single"]) == ([], 0)


def test_launches_in_several_alignments_have_the_same_text_both_ways() -> None:
    """Offsets and sizes that are multiples of 16 and not; descriptors among the arguments"""
    sizes = [call("add", tensor(0, n), tensor(1, n, offset=n % 2)) for n in (1000, 1024, 1001, 7)]
    pointers = {"text": styles.VECTOR_ADD.text, "requests": sizes}
    descriptors = {"text": styles.ATTENTION.text, "requests": [call("attention", *HALVES, Scalar(0.5))]}
    found = compared("calls", given=[pointers, descriptors])
    assert [(one["compared"] > 0, one["different"], one["single"]) for one in found] == [(True, [], 0)] * 2


MANY_GPUS = beside(__file__)["many_gpus"]


@pytest.mark.parametrize(("named", "value", "lowered"), [
    pytest.param("NAMED = tl.constexpr(7)", "NAMED", 2, marks=pytest.mark.slow),
    ("NAMED = tl.constexpr(COUNT)", "NAMED", 6),
    ("NAMED = tl.float16 if COUNT == 1 else tl.float32", "tl.full((BLOCK,), 2.5, NAMED)", 4),
    pytest.param("NAMED = None", "1.0", 2, marks=pytest.mark.slow),
])
def test_what_is_loaded_anew_for_another_gpu_has_the_same_text_both_ways(named: str, value: str, lowered: int) -> None:
    """A function that says the same is not lowered again, and one that does not for each of its specializations"""
    requests = [call("entry", tensor(0, 128)) | {"multiprocessors": count} for count in (132, 1, 3)]
    given = [{"text": MANY_GPUS.format(named=named, value=value), "requests": requests}]
    (found,) = compared("calls", given=given)
    assert (found["compared"], found["different"], found["lowered"]) == (6, [], lowered)


@pytest.mark.slow
@pytest.mark.parametrize("id", [id for id, assignment in ASSIGNMENTS.items() if not assignment.is_quiz])
def test_right_submissions_have_the_same_text_both_ways(id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that the solution is asked for, asked of every right submission"""
    asked: list[dict[str, Any]] = []
    ask = sandbox.Tracer._ask

    def remembered(tracer: sandbox.Tracer, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        if request["do"] in ("trace", "gradient"):
            asked.append(dict(request))
        return ask(tracer, request, seconds)

    monkeypatch.setattr(sandbox.Tracer, "_ask", remembered)
    grade(ASSIGNMENTS[id], ROOT / "solutions" / id / "solution.py", profile="quick", device="cpu")
    assert asked
    styles = (*bases(ASSIGNMENTS[id]), *right.files(id))
    paths = (ROOT / "solutions" / id / "solution.py", *styles)
    given = [{"text": read(path).text, "requests": asked} for path in paths]
    for path, found in zip(paths, compared("calls", given=given), strict=True):
        assert found["compared"] > 0 and (path.name, found["different"]) == (path.name, [])


def aligned(program: Program) -> list[bool]:
    """Which arguments the kernel's text says are aligned."""
    kernel = program.kernels[only(program.steps, Launch).kernel]
    line = next(line for line in kernel.ttir.splitlines() if "tt.func public" in line)
    return [ALIGNMENT in argument for argument in line.partition("(")[2].split("%")[1:]]


@pytest.mark.parametrize(("x", "expected"), [
    (tensor(0, 128), [True, True, True]),
    (tensor(0, 127), [True, True, False]),
    (tensor(0, 128, offset=1), [False, True, True]),
    (tensor(0, 127, offset=1), [False, True, False]),
    (tensor(0, 128, offset=4), [True, True, True]),
])
def test_only_multiples_of_16_are_called_aligned(x: View, expected: Sequence[bool]) -> None:
    assert aligned(traced(ASKS, x)) == list(expected)


def test_what_differs_in_alignment_alone_is_one_kernel_to_the_engine() -> None:
    """Whose text says nothing of alignment, and is otherwise the same, to the last line"""
    kernels = [next(iter(traced(ASKS, tensor(0, 128, offset=offset)).kernels.values())) for offset in (0, 1)]
    assert kernels[0].ttir != kernels[1].ttir
    assert kernels[0].unaligned == kernels[1].unaligned == kernels[1].ttir.replace(ALIGNMENT, "")
    assert kernels[0].unaligned.count("\n") == kernels[0].ttir.count("\n")


def test_what_was_compiled_first_leaves_no_trace_in_what_comes_later() -> None:
    forms = [tensor(0, 128), tensor(0, 127), tensor(0, 128, offset=1)]
    programs = []
    for order in (forms, forms[::-1]):
        with sandbox.Tracer(submission(ASKS)) as tracer:
            programs.append({form: tracer.trace("entry", [form]) for form in order})
    assert programs[0] == programs[1]


def test_a_kernel_is_compiled_once_for_all_alignments() -> None:
    text = """
    @triton.jit
    def kernel(x, n):
        tl.static_print("compiled")
        tl.store(x + n, 1.0)

    def entry(x):
        kernel[(1,)](x, x.numel())
    """
    with sandbox.Tracer(submission(text)) as tracer:
        kernels = [list(tracer.trace("entry", [tensor(0, size)]).kernels) for size in (128, 127, 64)]
    assert tracer.output == "compiled\n"
    assert kernels[0] == kernels[2] != kernels[1]


def test_a_kernel_that_another_text_has_unchanged_is_not_compiled_again() -> None:
    first = """
    @triton.jit
    def one(x):
        tl.static_print("one")
        tl.store(x, 1.0)

    @triton.jit
    def two(x):
        tl.static_print("two")
        tl.store(x, 2.0)

    def entry(x):
        one[(1,)](x)
        two[(1,)](x)
    """
    second = first.replace("2.0", "3.0")
    with sandbox.Tracer(submission(second)) as tracer:
        alone = tracer.trace("entry", [tensor(0, 8)])
    with sandbox.Tracer(submission(first)) as tracer:
        tracer.load()
        tracer.replace(submission(first))
        before = tracer.trace("entry", [tensor(0, 8)])
        tracer.replace(submission(second))
        replaced = tracer.trace("entry", [tensor(0, 8)])
        assert tracer.output == "one\ntwo\ntwo\n"
    assert replaced == alone != before
