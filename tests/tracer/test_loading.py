"""Statements run one by one: definitions must work, experiments that cannot run are left out with a note."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from gradekit.findings import Cause
from gradekit.program import Scalar
from gradekit.sandbox import TraceError, Tracer
from gradekit.tracer import child
from gradekit.tracer.child import Output
from gradekit.tracer.errors import TimeUp
from tests.graded import record_of

from .helpers import X, kinds, refused, submission, traced
from .styles import Text

ENTRY = "def entry(x):\n    return torch.empty_like(x)\n"


def notes(body: str) -> tuple[str, ...]:
    with Tracer(submission(body)) as tracer:
        return tracer.load().notes


@pytest.mark.parametrize(("experiment", "reason"), [
    ("print(torch.ones(3, device='cuda').sum().item())", "item() needs the values"),
    ("assert torch.allclose(torch.ones(3, device='cuda'), torch.ones(3, device='cuda'))", "torch.allclose"),
    ("value = 1 / 0", "ZeroDivisionError"),
    ("for i in range(3):\n    print(torch.ones(3, device='cuda')[i].item())", "item()"),
    ("if torch.ones(1, device='cuda'):\n    pass", "needs the values"),
    ("import matplotlib.pyplot_that_is_missing as plt", "ModuleNotFoundError"),
    ("exit()", "SystemExit"),
    ("import sys; sys.exit(1)", "SystemExit"),
    ("entry(3)", "TypeError"),
])
def test_an_experiment_that_cannot_run_is_left_out(experiment: str, reason: str) -> None:
    (note,) = notes(ENTRY + experiment + "\n")
    assert note.startswith("│ line 12 was left out (")
    assert reason in note


def test_a_left_out_statement_keeps_its_inner_line() -> None:
    (note,) = notes("for i in range(2):\n    y = 1\n    1 / 0\n")
    assert note == "│ line 10 was left out (at line 12, ZeroDivisionError: division by zero)"


@pytest.mark.parametrize(
    "experiment",
    ["y = entry(torch.ones(5, device='cuda')) + 1\nprint(y, y.shape)\ntorch.cuda.synchronize()\n", "if __name__ == '__main__':\n    1 / 0\n"],
)
def test_what_runs_without_values_or_is_for_other_times_is_not_noted(experiment: str) -> None:
    assert notes(ENTRY + experiment) == ()


@pytest.mark.parametrize(("statement", "told"), [
    ("import os; os.system('touch here')", "os.system"), ("import os; os.kill(os.getpid(), 0)", "os.kill"),
    ("import subprocess\ntry:\n    subprocess.run(['ls'])\nexcept OSError:\n    pass", "subprocess.Popen"),
    ("try:\n    open('results.json', 'w')\nexcept OSError:\n    pass", "open 'results.json', to write"),
])
def test_what_turns_to_the_system_is_noted(statement: str, told: str) -> None:
    assert any(f" turned to the system ({told})" in note for note in notes(f"{ENTRY}{statement}\n"))


@pytest.mark.sample(1)
def test_what_turns_to_the_system_in_a_call_is_noted_as_well(tmp_path: Path) -> None:
    """Also where the result is right and what was asked for is refused"""
    statements = "    import os, subprocess\n    os.system('touch here')\n    try:\n        open('there', 'w')\n        subprocess.run(['ls'])\n    except OSError:\n        pass\n"
    text = (Path(__file__).parents[2] / "solutions/vector_add/solution.py").read_text()
    at = text.index("    out = torch.empty(")
    line = text[:at].count("\n") + 2
    record = record_of("vector_add", text[:at] + statements + text[at:], tmp_path, profile="default", keyword="contiguous")
    assert record["score"]["earned"] == record["score"]["possible"] > 0
    asked = [note for note in record["notes"] if " turned to the system (" in note]
    assert asked[:2] == [f"line {line} turned to the system (os.system)", f"line {line + 2} turned to the system (open)"]


@pytest.mark.parametrize("statement", [
    "import decimal, tempfile, logging", "open(__file__).read()", "k[(1,)](entry(torch.ones(5, device='cuda')))",
])
def test_what_reads_imports_or_launches_is_not_noted(statement: str) -> None:
    assert notes(f"@triton.jit\ndef k(x):\n    tl.store(x, 1.0)\n{ENTRY}{statement}\n") == ()


def test_a_name_that_was_left_out_is_explained_where_it_is_missed() -> None:
    error = refused("SCALE = float(torch.ones(1, device='cuda'))\ndef entry(x):\n    return x[:SCALE]", X)
    assert error.cause is Cause.EXCEPTION and error.line == 12
    assert "name 'SCALE' is not defined" in error.message and "line 10 was left out" in error.message


def test_a_function_that_was_left_out_for_an_import_is_explained_by_the_import() -> None:
    error = refused("import no_such as n\nclass Sizes:\n    block = n.BLOCK\ndef entry(x):\n    return x[: Sizes.block]", X)
    assert "name 'Sizes' is not defined" in error.message
    assert "line 10 was left out (ModuleNotFoundError: No module named 'no_such')" in error.message


def test_an_entry_that_was_left_out_is_explained() -> None:
    error = refused("entry = make_entry()\n", X)
    assert error.cause is Cause.MISSING_ENTRY
    assert "line 10 was left out" in error.message


@pytest.mark.parametrize(("body", "cause", "line", "said"), [
    ("from torch import nothing_of_this_name", Cause.EXCEPTION, 10, "nothing_of_this_name"),
    ("@undefined\ndef entry(x):\n    return x", Cause.EXCEPTION, 10, "undefined"),
    ("class A(Missing):\n    pass", Cause.EXCEPTION, 10, "Missing"),
    ("x = 1\ndef f(y=1 / 0):\n    pass", Cause.EXCEPTION, 11, "division by zero"),
    ("def f(:\n    pass", Cause.SYNTAX_ERROR, 10, "SyntaxError"),
    ("@triton.jit\ndef k(x, **options):\n    pass\n@triton.autotune(3, key=[])\ndef f(): pass", None, None, ""),
])
def test_a_definition_that_fails_rejects_the_submission(body: str, cause: Cause | None, line: int, said: str) -> None:
    with Tracer(submission(body)) as tracer, pytest.raises(TraceError) as caught:
        tracer.load()
    if cause is not None:
        assert (caught.value.cause, caught.value.line) == (cause, line)
        assert said in caught.value.message


def test_functions_are_listed_with_their_arity() -> None:
    body = """
        def entry(x, y, eps=1e-5): pass
        def _private(): pass
        def anything(*args): pass
        class Op(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x
        applied = Op.apply
        from math import floor
        """
    with Tracer(submission(body)) as tracer:
        assert tracer.load().functions == {"entry": (2, 3), "anything": (0, -1), "applied": (0, -1)}


def test_future_imports_hold_for_the_whole_file() -> None:
    text = Text("from __future__ import annotations\ndef entry(x: Undefined) -> AlsoUndefined:\n    return x\n")
    with Tracer(text) as tracer:
        assert tracer.load().notes == ()
        assert tracer.trace("entry", [X]).results == (X,)


@pytest.mark.parametrize(("text", "said"), [("def softmaxx(x): return x\n", "`softmaxx`"), ("softmax = 3\n", "int")])
def test_a_missing_entry_names_its_neighbours_and_one_that_is_no_function_is_missing(text: str, said: str) -> None:
    error = refused(text, X, entry="softmax")
    assert error.cause is Cause.MISSING_ENTRY and said in error.message


@pytest.mark.parametrize("parameters", ["", "x, y, z", "*, x"])
def test_a_wrong_arity_is_told(parameters: str) -> None:
    error = refused(f"def entry({parameters}): return 0\n", X)
    assert error.cause is Cause.WRONG_ARITY
    assert f"entry({parameters})" in error.message and "1 argument" in error.message and error.line == 10


def test_dataclasses_enums_and_closures_work() -> None:
    body = """
        import dataclasses, enum, logging, functools
        @dataclasses.dataclass
        class Shape:
            n: int
        class Mode(enum.Enum):
            FAST = 1
        logging.warning("fine")
        @functools.lru_cache
        def block(n):
            return triton.next_power_of_2(n)
        def make():
            def entry(x):
                out = torch.empty_like(x)
                copy_kernel[(1,)](x, out, Shape(x.numel()).n, BLOCK=block(x.numel()))
                return out
            return entry
        entry = make()
        """
    assert kinds(traced(body, X).steps) == ["Allocate", "Launch"]


@pytest.mark.parametrize(
    ("request_", "doing"), [({"do": "load"}, "while the file was loaded"), ({"do": "trace", "entry": "add"}, "in add")]
)
def test_time_that_is_up_twice_is_told_in_the_same_words(
    request_: dict[str, str], doing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The second alarm can ring while the first is being explained"""

    def late(request: dict[str, str]) -> None:
        request.pop("do")
        raise TimeUp

    monkeypatch.setattr(child, "_alarm", lambda *seconds: None)  # whose handlers would stay
    slow = SimpleNamespace(answer=late, directory=tmp_path)  # a Child would patch Triton, for good
    asked = request_ | {"seconds": 1, "wall_seconds": 1, "patience": 0}
    answer = child._answer(slow, asked, Output())  # type: ignore[arg-type]
    assert answer["error"]["message"] == f"Time is up {doing}: does a loop never end?"


def test_the_triton_code_that_helion_generates_runs_without_helion() -> None:
    body = """
        import helion
        import helion.language as hl
        from helion.runtime import default_launcher as _default_launcher
        helion.runtime.set_triton_allocator()

        def entry(x, *, _launcher=_default_launcher):
            out, processors = torch.empty_like(x), helion.runtime.get_num_sm(x.device, reserved_sms=2)
            _launcher(copy_kernel, (triton.cdiv(100, 32),), x, out, processors, 32, num_warps=2, num_stages=1)
            return out
        """
    program = traced(body, X)
    (launch,) = program.launches()
    assert launch.grid == (4, 1, 1) and launch.args[2] == Scalar(130, "i32")
    assert program.kernels[launch.kernel].options["num_warps"] == 2


def test_a_kernel_in_helion_itself_is_told_what_to_hand_in() -> None:
    body = """
        import helion
        import helion.language as hl

        @helion.kernel()
        def entry(x):
            return x
        """
    error = refused(body, X)
    assert error.cause is Cause.MISSING_ENTRY and "`helion.kernel` is not there" in error.message
    assert "kernel.bind(arguments).to_triton_code()" in error.message
