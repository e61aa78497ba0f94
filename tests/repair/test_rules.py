"""The rules of mending take any text: none raises where a text is distorted, and one that raises silences no other."""

from __future__ import annotations

import ast
import logging
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gradekit.repair.idioms import candidates
from gradekit.repair.idioms.candidates import mends
from gradekit.repair.mend import Family, Mend, with_feeds
from gradekit.source.dependences import fed_lines
from gradekit.source.draft import Draft
from gradekit.source.kernel import KernelDraft
from tests.repair.corpora import ROOT, assignments, corpus

STEPS = "solutions/matmul/right_default_precision.py"


def text(path: str | Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


# --- a rule that raises -----------------------------------------------------------------------------------------------


def raising(draft: Draft, kernel: KernelDraft | None = None) -> Iterator[Mend]:
    raise KeyError("a text that nobody expected")
    yield


def raising_late(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    yield from candidates.of_loops.steps_rounded_down(draft, kernel)
    raise KeyError("a text that nobody expected")


def test_a_rule_that_raises_silences_no_other(
    monkeypatch: pytest.MonkeyPatch, unexpected: list[logging.LogRecord]
) -> None:
    wrong = text(STEPS).replace("tl.cdiv(K, BK)", "K // BK")
    usual = mends(wrong)
    monkeypatch.setattr(candidates, "_IN_KERNELS", (raising, *candidates._IN_KERNELS))
    monkeypatch.setattr(candidates, "_ON_HOST", (raising, *candidates._ON_HOST))
    assert usual and mends(wrong) == usual and unexpected
    unexpected.clear()


def test_what_a_rule_has_found_before_it_raises_is_kept(
    monkeypatch: pytest.MonkeyPatch, unexpected: list[logging.LogRecord]
) -> None:
    wrong = text(STEPS).replace("tl.cdiv(K, BK)", "K // BK")
    monkeypatch.setattr(candidates, "_IN_KERNELS", (raising_late,))
    monkeypatch.setattr(candidates, "_ON_HOST", ())
    assert ["rounds `K // BK` down" in mend.sentence for mend in mends(wrong)] == [True]
    assert [(record.getMessage(), bool(record.exc_info)) for record in unexpected] == [("The rule raising_late failed", True)]
    unexpected.clear()


# --- any text ---------------------------------------------------------------------------------------------------------


def submissions() -> list[str]:
    folders = [*ROOT.glob("solutions/*"), *ROOT.glob("tests/course/right/*"), *ROOT.glob("assignments/*")]
    right = [path.read_text(encoding="utf-8") for folder in sorted(folders) for path in sorted(folder.glob("*.py"))]
    return right + [mistake.text for id in assignments() for mistake in corpus(id)]


def distorted(source: str, rng: random.Random) -> str:
    """A text with lines deleted, a line twice, one name for another, or something else for a word."""
    lines, words = source.splitlines(keepends=True), re.split(r"(\w+)", source)
    names = sorted({word for word in words if word.isidentifier() and word not in KEPT})
    place = rng.randrange(len(lines))
    match rng.randrange(5):
        case 0:
            gone = {place, *rng.sample(range(len(lines)), min(3, len(lines)))}
            return "".join(line for number, line in enumerate(lines) if number not in gone)
        case 1:
            return "".join([*lines[:place], lines[place], *lines[place:]])
        case 2:
            return re.sub(rf"\b{rng.choice(names)}\b", rng.choice(names), source)
        case 3:
            words[rng.randrange(len(words))] = rng.choice(("", "0", "x", "()", "[0]", "-1", "*x", "None", "x.y", "x=1"))
            return "".join(words)
    return source


KEPT = {"def", "return", "import", "for", "in", "if", "tl", "triton", "torch", "jit"}


def is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize("many", [20, pytest.param(1500, marks=pytest.mark.slow)])
def test_no_rule_raises_whatever_the_text(many: int) -> None:
    rng, right = random.Random(f"distorted {many}"), submissions()
    tried = 0
    while tried < many:
        source = distorted(rng.choice(right), rng)
        if is_python(source):
            tried += 1
            every_rule(source)


def every_rule(source: str) -> None:
    """All that `mends` does, with nothing caught."""
    draft = Draft(source, ("0.5",))
    found = [mend for kernel in draft.kernels for rule in candidates._IN_KERNELS for mend in rule(draft, kernel)]
    found += [mend for rule in candidates._ON_HOST for mend in rule(draft)]
    found += candidates._together(found)
    fed = fed_lines(draft)
    for mend in found:
        assert with_feeds(mend, fed, source).line >= 1


def test_a_step_that_is_rounded_down_is_mended_together_with_the_mask_of_a_helper() -> None:
    source = text(STEPS)
    wrong = source.replace("tl.cdiv(K, BK)", "K // BK").replace(" & (rk[None, :] < K)", "")
    wrong = wrong.replace("(rk[:, None] < K) & ", "")
    step = next(mend for mend in mends(wrong) if "rounds `K // BK` down" in mend.sentence and len(mend.edits) == 1)
    masks = [mend for mend in mends(wrong) if mend.family is Family.MASK and len(mend.edits) > 1]
    both = list(candidates._together([step, *(replace(mend, kernel="") for mend in masks)]))
    assert len(both) == len(masks) > 0 and all(mend.kernel == "" and len(mend.edits) > 2 for mend in both)


DECODE = "tests/course/right/decode_attention/"


@pytest.mark.parametrize(
    ("path", "right", "wrong", "said"),
    [
        ("split_in_four.py", "quarter = (length + 3) // 4", "quarter = length // 4", "rounds `length // 4` down"),
    ],
)
def test_what_is_worked_out_in_place_of_a_parameter_or_rounded_down_is_named(
    path: str, right: str, wrong: str, said: str
) -> None:
    source = text(DECODE + path)
    changed = source.replace(right, wrong, 1)
    plain = lambda found: re.sub(r"[()]", "", found)
    mend = next(mend for mend in mends(changed) if said in mend.sentence)
    assert changed != source and plain(mend.applied(changed)) == plain(source)
    assert not any(said in mend.sentence for mend in mends(source))


MOVED = '''
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * n
    out_ptr += row * n
    cols = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + cols, mask=cols < n), tl.load(y_ptr + cols, mask=cols < n)
    tl.store(out_ptr + cols, x + y, mask=cols < n)
'''




GIOU = "tests/course/right/giou_loss/"
UNION = "union = (pr - pl) * (pb - pt) + (gr - gl) * (gb - gt) - inter"


@pytest.mark.parametrize(
    ("path", "changes", "said"),
    [
        ("sums_by_sample.py", {UNION: "union = pr * pb + gr * gb - inter"}, "and leaves out `gl` and `gt`"),
        ("sums_by_sample.py", {"p_ptr + pc": "p_ptr + 1", "p_ptr + 2 * pc": "p_ptr + 2", "p_ptr + 3 * pc": "p_ptr + 3"},
         "under the same names, and leave out the stride `pc`"),
        ("flat_blocks.py", {"dp_ptr += (batch * N + n) * 4": "dp_ptr += batch * N + n"}, "each item has 4 elements of dp_ptr"),
        ("flat_blocks.py", {"tl.where(pr < gr": "tl.where(pr > gr", "tl.where(pr > gr, outer": "tl.where(pr < gr, outer"},
         "its comparison has > where that has <; its comparison has < where that has >"),
    ],
)  # fmt: skip
def test_what_another_line_of_a_submission_shows_is_mended_like_it(path: str, changes: dict[str, str], said: str) -> None:
    source = text(GIOU + path)
    wrong = source
    for right, mistaken in changes.items():
        wrong = wrong.replace(right, mistaken, 1)
    mend = next(mend for mend in mends(wrong) if said in mend.sentence)
    assert wrong != source and mend.applied(wrong) == source
    assert not any(said in mend.sentence for mend in mends(source))


def test_a_mask_that_holds_in_all_lanes_is_named() -> None:
    source = text("solutions/spmm/solution.py")
    wrong = MOVED.replace("x_ptr + cols, mask=cols < n", "x_ptr + cols, mask=cols >= 0")
    (mend,) = (mend for mend in mends(wrong) if "holds in all lanes" in mend.sentence)
    assert mend.applied(wrong) == MOVED and mend.line == 8
    assert not any("holds in all lanes" in mend.sentence for mend in mends(source))


STEPS_BY_ONE = '''
@triton.jit
def kernel(x_ptr, out_ptr, n, sx, stride_c, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x_ptr += row * sx
    first, second = tl.load(x_ptr, mask=row < n), tl.load(x_ptr + 1, mask=row < n)
    third = tl.load(x_ptr + 2, mask=row < n)
    tl.store(out_ptr + row, first + second + third, mask=row < n)
'''


def test_numbers_in_addresses_are_multiplied_by_the_stride_that_nobody_uses_all_at_once() -> None:
    (mend,) = (mend for mend in mends(STEPS_BY_ONE) if "1 and 2 in the addresses of x_ptr" in mend.sentence)
    assert mend.line == 6 and "tl.load(x_ptr + 1 * stride_c, mask=row < n)" in mend.applied(STEPS_BY_ONE)
    assert "tl.load(x_ptr + 2 * stride_c, mask=row < n)" in mend.applied(STEPS_BY_ONE)
    assert not any(" x_ptr * stride_c" in mend.applied(STEPS_BY_ONE) for mend in mends(STEPS_BY_ONE))
