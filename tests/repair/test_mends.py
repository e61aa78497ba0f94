"""A mended program names what is wrong: one edit, its line, and a sentence; nothing is said of what no edit mends."""

import ast
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gradekit.assignment import get
from gradekit.causes import Cause
from gradekit.judge.evidence import Diagnosis
from gradekit.repair.idioms.candidates import in_order, mends
from gradekit.repair.idioms.idiom import idioms_of
from gradekit.repair.mend import Clues, Family, Mend
from gradekit.repair.other_checks import OtherChecks
from gradekit.repair.search import RIGHT, Mending, diagnosis_of, without_experiments
from gradekit.repair.tutor import mend_of_both
from gradekit.repair.work import Work
from gradekit.source.draft import Draft, making
from gradekit.subject.subject import Subject
from gradekit.submission import Submission, read
from tests import right
from tests.repair.corpora import ROOT, Verdict
from tests.repair.graded_mistake import tutored
from tests.right import text

SUBMISSIONS = [
    "solutions/softmax/right_one_row.py", "solutions/softmax/right_online.py", "tests/course/right/matmul/tutorial.py",
    "solutions/layer_norm/right_column_sums.py", "solutions/flash_attention/right_tutorial_pointers.py",
    "solutions/spmm/solution.py", "tests/course/right/vector_add/rows_and_columns.py",
]  # fmt: skip
CLUES = Clues(frozenset({Cause.WRONG_VALUES}), ())
ONLINE = ROOT / "solutions/softmax/right_online.py"


def diagnosis(mending: Mending, clues: Clues, tries: Any) -> Diagnosis | None:
    """What is told of the first mend that helps."""
    mend = mending.found(clues, tries)
    return mending.told(mend, clues, tries) if mend is not None else None


class Tries:
    """What a search is told of each text that it tries: whether it is right, what that cost, and what others say of it."""

    passed, text = 0, ""
    beside: Sequence[Mend] = ()
    check = SimpleNamespace(error=SimpleNamespace(comparison=None), call=None)  # no call that changes are looked at on
    texts = SimpleNamespace(screen=lambda text, work: None)

    def __init__(self, right: Any, cost: int = 0, *, holds: Any = None, alone: bool = False) -> None:
        self.right, self.cost, self.alone = right, cost, alone
        self.holds = holds or (lambda mend: OtherChecks.ALL)

    def is_right(self, text: str, has_made_right: bool) -> bool:
        return bool(self.right(text))

    def spent(self) -> int:
        return self.cost

    def refutes(self, text: str) -> bool:
        return False

    def fails_alone(self) -> bool:
        return self.alone

    def by_values(self) -> None:
        """No example has results that are compared."""

    def is_by_chance(self, mend: Mend) -> bool:
        return False

    def hides_mistake(self, text: str) -> bool:
        return False  # nothing does more or less than before


@pytest.mark.sample(3)
@pytest.mark.parametrize("path", SUBMISSIONS)
def test_every_mend_is_another_program_of_as_many_lines(path: str) -> None:
    source = text(path)
    found = mends(source)
    assert found
    for mend in found[::7]:
        changed = mend.applied(source)
        assert changed != source and changed.count("\n") == source.count("\n")
        assert 1 <= mend.line <= source.count("\n") and mend.sentence and mend.hint


SENTENCES = """
import pathlib, sys
from gradekit.repair.idioms.candidates import mends
for path in sys.argv[1:]:
    for mend in mends(pathlib.Path(path).read_text()):
        print(mend.rank, mend.sentence, [(edit.start, edit.new) for edit in mend.edits])
"""


def test_the_mends_and_their_order_are_the_same_in_every_process() -> None:
    """Sets of strings are walked in another order in each process; which mends fit the budget must not depend on it."""
    paths = [
        "solutions/matmul/solution.py", "solutions/custom_op/solution.py", "solutions/layer_norm/right_column_sums.py",
    ]
    said = [
        subprocess.run(
            [sys.executable, "-c", SENTENCES, *paths], env=os.environ | {"PYTHONHASHSEED": seed}, cwd=ROOT,
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert said[0] and said[0] == said[1]


def test_what_is_no_python_has_no_mends() -> None:
    assert mends("def f(:") == [] and mends("") == []


def test_the_first_mend_that_makes_all_right_is_named_with_its_line_and_the_way_out() -> None:
    mending = Mending(text(ONLINE).replace('tl.full((), -float("inf")', "tl.full((), 0.0"))
    found = diagnosis(mending, CLUES, Tries(lambda changed: "tl.full((), 0.0" not in changed))
    assert found is not None and found.line == 13 and "a running maximum must begin below every number" in found.sentence
    assert "let m begin at -inf" in found.hint and "this example and others are right" in found.hint


def test_no_mend_is_believed_where_the_text_as_it_is_has_become_right() -> None:
    mending = Mending(text(ONLINE).replace('tl.full((), -float("inf")', "tl.full((), 0.0"))
    found = diagnosis(mending, CLUES, Tries(lambda changed: True))
    assert found is not None and found.cause is Cause.DEPENDS_ON_EARLIER_CALLS and found.line is None
    raced = Clues(frozenset({Cause.RACE}), ("softmax_kernel",))
    assert diagnosis(mending, raced, Tries(lambda changed: True)) is None
    alone = diagnosis(mending, CLUES, Tries(lambda changed: True, alone=True))
    assert alone is not None and alone.line is not None, "where a walk has found it wrong alone, that is not tried"


def test_nothing_is_said_where_no_mend_helps_and_the_budget_of_a_submission_ends() -> None:
    mending = Mending(text("solutions/flash_attention/right_tutorial_pointers.py"))
    calls = []
    for _ in range(8):
        assert diagnosis(mending, CLUES, Tries(lambda changed: bool(calls.append(changed)))) is None
    assert len(calls) == mending.tried and mending.work.used <= 1.1 * mending.work.tried.most


def test_tries_that_compile_and_run_much_are_fewer() -> None:
    cheap, dear = (Mending(text("solutions/flash_attention/right_tutorial_pointers.py")) for _ in range(2))
    assert diagnosis(cheap, CLUES, Tries(lambda _: False)) is None
    assert diagnosis(dear, CLUES, Tries(lambda _: False, 300_000_000)) is None
    assert 2 <= dear.tried < cheap.tried / 3
    assert dear.tried * 300_000_000 <= dear.work.tried.most + 300_000_000


def test_what_a_second_mistake_takes_counts_for_the_submission_and_is_bounded_by_itself() -> None:
    work = Work(1000)
    second = work.of_a_second()
    second.tried.spend(100)
    work.in_kernels.spend(7)
    assert (second.used, work.used, second.most) == (100, 107, 1000)
    assert work.tried.most + work.in_kernels.most + work.on_host.most == 1000
    assert second.tried.left == second.tried.most - 100
    work.tried.spend(780)
    assert (work.used, work.of_a_second().most) == (887, 500), "where little is left, all of them have less together"


def test_experiments_outside_of_functions_are_not_run_for_each_try() -> None:
    """Triton's tutorials end with them; what a function needs stays, and no line moves."""
    tutorial = text("tests/course/right/softmax/tutorial.py")
    bare = without_experiments(tutorial)
    assert "y_triton = softmax(x)" not in bare and "properties = driver" in bare and "return y\n" in bare
    assert bare.count("\n") == tutorial.count("\n")
    over_lines = "def f(a):\n    return a\n\nx = f(\n    1,\n)\ny = 2\n"
    assert ast.dump(ast.parse(without_experiments(over_lines)).body[-1]) == ast.dump(ast.parse("y = 2").body[0])
    assert without_experiments(over_lines).splitlines()[6] == "y = 2"
    assert without_experiments(text(ONLINE)) == text(ONLINE) and without_experiments("def f(:") == "def f(:"


def test_what_mended_one_check_is_the_first_to_be_tried_at_the_next() -> None:
    mending = Mending(text(ONLINE).replace('tl.full((), -float("inf")', "tl.full((), 0.0"))
    right = lambda changed: "tl.full((), 0.0" not in changed
    diagnosis(mending, CLUES, Tries(right))
    before = mending.tried
    diagnosis(mending, CLUES, Tries(right))
    assert mending.tried == before + 1  # the mend; the text as it is was wrong without it before


def test_what_mended_one_check_takes_nothing_at_the_next_of_what_other_mistakes_are_looked_for_with() -> None:
    mending = Mending(text(ONLINE).replace('tl.full((), -float("inf")', "tl.full((), 0.0"))
    right = lambda changed: "tl.full((), 0.0" not in changed
    diagnosis(mending, CLUES, Tries(right, 300_000_000))
    left = mending.work.tried.left
    diagnosis(mending, CLUES, Tries(right, 300_000_000))
    assert mending.work.tried.left == left


def test_lines_that_the_wrong_result_does_not_depend_on_are_left_alone() -> None:
    source = text("solutions/flash_attention/right_tutorial_pointers.py").replace("tl.trans(p).to(do", "p.to(do")
    clues = replace(CLUES, kernels=("dkdv_kernel",), wrong=frozenset({"dkdv_kernel.dk_ptr"}))
    lines = {mend.line for mend in Mending(source).candidates(clues) if mend.kernel == "dkdv_kernel"}
    every = {
        mend.line
        for mend in Mending(source).candidates(replace(clues, wrong=frozenset()))
        if mend.kernel == "dkdv_kernel"
    }
    dv = next(number for number, line in enumerate(source.splitlines(), 1) if line.strip().startswith("dv +="))
    dk = next(
        number for number, line in enumerate(source.splitlines(), 1) if line.strip().startswith("tl.store(dk_ptr")
    )
    assert dk in lines and dv in every and dv not in lines and lines < every


def test_kernels_that_the_call_did_not_launch_are_left_alone() -> None:
    found = mends(text("solutions/flash_attention/right_tutorial_pointers.py"))
    assert {mend.kernel for mend in in_order(found, Clues(frozenset(), ("fwd_kernel",)))} == {"", "fwd_kernel"}


class Process:
    """Stands in for a tracer's: counts how often it was ended."""

    def __init__(self) -> None:
        self.ended = 0

    def replace(self, submission: Submission) -> None:
        """Takes another text."""

    def instructions(self, entry: str, args: Sequence[Any]) -> int:
        """Counts none."""
        return 0

    def close(self) -> None:
        self.ended += 1


@pytest.mark.parametrize("is_asked", [False, True])
def test_with_another_text_all_processes_are_ended_whether_anything_was_asked_of_them_or_not(is_asked: bool) -> None:
    started: list[Process] = []
    start: Any = lambda: (started.append(Process()), started[-1])[1]
    submission = read(ROOT / "solutions/vector_add/solution.py")
    subject = Subject(submission, get("vector_add"), start, is_brief=True)
    if is_asked:
        subject.instructions("add", [])
    subject.of_another_text(submission).close()
    assert [process.ended for process in started] == [1] * (1 + is_asked)


def test_what_never_ends_may_come_of_what_a_text_shows_on_another_line() -> None:
    """A load of `end` without its stride, where `start` is blamed"""
    unlikely = Mend(Family.STRIDES, 60, 15, (), "", "", kernel="spmm_kernel")
    specific, elsewhere = replace(unlikely, rank=4, line=16), replace(unlikely, rank=8, line=16)
    endless = Clues(frozenset({Cause.BUDGET_EXCEEDED}), (), lines=frozenset({15}))
    assert in_order([unlikely, elsewhere, specific], endless) == [specific, unlikely]


def test_evidence_of_a_race_brings_atomics_to_the_front() -> None:
    found = mends(text("solutions/layer_norm/right_column_sums.py"))
    raced = in_order(found, Clues(frozenset({Cause.RACE}), ("forward_kernel",)))
    assert raced[0].family in (Family.MEMORY, Family.INDEX, Family.GRID)


# --- which mends are tried where a kernel has no result, in which order others are, and which are ---------------------


SHARED = right.text("tests/course/right/dropout/grid_stride.py")


def line_of(piece: str) -> int:
    return next(number for number, line in enumerate(SHARED.splitlines(), 1) if piece in line)


def test_a_line_that_triton_refuses_is_made_by_its_names_its_loop_and_the_launch() -> None:
    made = making(SHARED, line_of("x = tl.load"))
    wanted = ["x = tl.load", "for start", "step = ", "offsets = ", "mask = ", "dropout_kernel[("]
    assert {line_of(piece) for piece in wanted} <= made
    assert made.isdisjoint({line_of(piece) for piece in ("tl.store(", "out = torch", "class Dropout", "n = x.numel")})
    assert making(SHARED, line_of("out = torch")) == {line_of("out = torch")} and making("def f(:", 1) == {1}


def test_a_text_is_known_to_have_made_a_check_right() -> None:
    wrong = SHARED.replace("< p, 0.0, x / (1 - p)", "< p, 0.0, x")
    mending = Mending(wrong, idioms=idioms_of(ROOT / "assignments/dropout/idioms.toml"))
    found = mending.found(CLUES, Tries(lambda text: ast.dump(ast.parse(text)) == ast.dump(ast.parse(SHARED))))
    assert found is not None and mending.has_made_right(found.applied(wrong)) and not mending.has_made_right(wrong)


# --- what empties results, or cuts runs off ---------------------------------------------------------------------------


@pytest.mark.parametrize(("id", "name"), [
    pytest.param("dropout", "p_is_not_kept", marks=pytest.mark.slow),  # what is right of one element may be 0
    ("dropout", "seed_passed_for_p"),  # a kernel that Triton refuses
])
def test_a_report_of_one_of_these_names_its_cause_and_line(id: str, name: str, tmp_path: Path) -> None:
    found = tutored(id, name, tmp_path)
    assert (found.verdict, found.line) == (Verdict.NAMED, True)


# --- what was blamed wrongly once -------------------------------------------------------------------------------------


HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\n"

ROWS = (
    HEAD
    + """def rows_kernel(x_ptr, y_ptr, out_ptr, N, sx, tx, sy, ty, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * sx + cols * tx, mask=cols < N, other=0.0)
    y = tl.load(y_ptr + row * sy + cols * ty, mask=cols < N, other=0.0)
    tl.store(out_ptr + row * N + cols, x + y, mask=cols < N)


def entry(x, y):
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    rows_kernel[(M,)](x, y, out, N, *x.stride(), *x.stride(), BLOCK=128)
    return out
"""
)

def said(text: str, piece: str) -> list[Mend]:
    return [mend for mend in mends(text) if piece in mend.sentence]


def test_a_tile_is_too_narrow_for_a_whole_row_and_never_where_a_loop_goes_in_steps_of_it() -> None:
    assert said(ROWS, "is too narrow")
    stepping = ROWS.replace(
        "    x = tl.load", "    for first in range(0, N, BLOCK):\n        cols += BLOCK\n    x = tl.load"
    )
    assert Draft(stepping).kernels[0].loops and not said(stepping, "is too narrow")


@pytest.mark.parametrize("held", OtherChecks)
def test_what_other_checks_refute_is_not_told(held: OtherChecks) -> None:
    mending, wanted = Mending(ROWS), "triton.next_power_of_2(N)"
    mend = mending.found(CLUES, Tries(lambda text: wanted in text, holds=lambda mend: held))
    assert (mend is None) is (held is OtherChecks.NOT)


def test_of_two_mends_that_is_told_with_which_more_checks_are_right() -> None:
    tried: list[Mend] = []

    def holds(mend: Mend) -> OtherChecks:
        tried.append(mend)
        return OtherChecks.IN_PART if len(tried) == 1 else OtherChecks.ALL

    helps = ("(y, x, out", "triton.next_power_of_2(N)")
    mend = Mending(ROWS).found(CLUES, Tries(lambda text: any(one in text for one in helps), holds=holds))
    assert mend is tried[-1] and len(tried) == 2


def test_copies_that_nobody_keeps_are_kept_together() -> None:
    kept = text("solutions/vector_add/right_copies.py").replace(
        "x, y = x.contiguous(), y.contiguous()", "x = x.contiguous()\n    y = y.contiguous()"
    )
    found = said(kept.replace("x = x.", "x.").replace("y = y.", "y."), "does not keep what it returns")
    applied = [mend.applied(kept.replace("x = x.", "x.").replace("y = y.", "y.")) for mend in found]
    assert applied == [kept.replace("y = y.", "y."), kept.replace("x = x.", "x."), kept]
    assert not said(kept, "does not keep")


def test_two_mends_that_were_right_are_the_first_that_another_check_tries_and_told_as_before() -> None:
    both = ROWS.replace("(M,)](", "(N,)](").replace("x + y", "x - y")
    half = mends(ROWS)[0]
    mending, mend = Mending(ROWS), mend_of_both(ROWS, both, half)
    assert mend.applied(ROWS) == both
    mending.work.tried.spend(mending.work.tried.left)
    mending.remember(mend, diagnosis_of(half, ROWS, both, CLUES, RIGHT))
    assert diagnosis(mending, CLUES, Tries(lambda text: text == both)) == diagnosis_of(half, ROWS, both, CLUES, RIGHT)


def test_what_starred_strides_give_is_no_length_whichever_tensor_has_which() -> None:
    text = "@triton.jit\ndef f(x, y, N, a, b, c, W: tl.constexpr):\n    pass\n\ndef g(x, y):\n    f[(1,)](x, y, {}, W=2)\n"
    lengths = lambda given: Draft(text.format(given)).kernels[0].lengths
    assert "N" in lengths("x.shape[0], *x.stride(), *y.stride()") and "b" not in lengths("x.shape[0], *x.stride(), *y.stride()")
    assert "b" in lengths("x.shape[0], *x.shape, *y.stride()")


@pytest.mark.parametrize("start", ["-10000.0", "tl.full((4,), -1e4, tl.float32)", "tl.zeros((4,), tl.float32)"])
def test_a_running_maximum_begins_at_no_number(start: str) -> None:
    text = "@triton.jit\ndef f(x):\n    m = {}\n    for i in range(0, 8, 4):\n        m = tl.maximum(m, tl.load(x + i))\n"
    says = [mend.sentence for mend in mends(text.format(start)) if "float('inf')" in mend.applied(text.format(start))]
    assert any("begin below every number" in one and "line 3" in one for one in says)


@pytest.mark.parametrize(("grid", "is_told"), [("(M,)", True), ("(M, triton.cdiv(N, 256))", False)])
def test_a_tile_of_which_the_grid_launches_more_is_not_too_narrow(grid: str, is_told: bool) -> None:
    text = f"@triton.jit\ndef f(x, N, W: tl.constexpr):\n    n = tl.arange(0, W)\n\ndef g(x, M, N):\n    f[{grid}](x, N, W=256)\n"
    assert any("too narrow" in mend.sentence for mend in mends(text)) is is_told
