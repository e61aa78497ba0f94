"""The rules of mending take any text: none raises where a text is distorted, and one that raises silences no other."""

import ast
import logging
import random
import re
from collections.abc import Iterable, Iterator

import pytest

from gradekit.repair.idioms import candidates
from gradekit.repair.idioms.candidates import mends
from gradekit.repair.idioms.idiom import GENERAL, idioms_of
from gradekit.repair.idioms.launches import loaded_in
from gradekit.repair.mend import Mend
from gradekit.source.draft import Draft
from gradekit.source.kernel import KernelDraft
from tests import right
from tests.repair.corpora import ROOT, assignments, corpus
from tests.right import text

STEPS = "solutions/matmul/right_default_precision.py"


# --- a rule that raises -----------------------------------------------------------------------------------------------


def raising(draft: Draft, kernel: KernelDraft | None = None) -> Iterator[Mend]:
    raise KeyError("a text that nobody expected")
    yield


def raising_late(draft: Draft, kernel: KernelDraft) -> Iterator[Mend]:
    yield from next(one for one in idioms_of(GENERAL) if one.name == "steps_rounded_down").mends(draft, kernel)
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
    wrong = text(STEPS).replace(", other=0.0", "")
    monkeypatch.setattr(candidates, "_IN_KERNELS", (raising_late,))
    monkeypatch.setattr(candidates, "_ON_HOST", ())
    assert any("with a mask and without other=" in mend.sentence for mend in mends(wrong))
    assert [(record.getMessage(), bool(record.exc_info)) for record in unexpected] == [("The rule raising_late failed", True)]
    unexpected.clear()


EVERY = [one for path in (GENERAL, *sorted(ROOT.glob("assignments/*/idioms.toml"))) for one in idioms_of(path)]

# --- any text ---------------------------------------------------------------------------------------------------------


def submissions(ids: Iterable[str]) -> list[str]:
    """Right submissions of all assignments, and the corpora of these."""
    own = [*sorted(ROOT.glob("assignments/*/*.py")), *sorted(ROOT.glob("solutions/*/*.py"))]
    files = [*own, *(path for id in right.assignments() for path in right.files(id))]
    return [text(path) for path in files] + [mistake.text for id in ids for mistake in corpus(id)]


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
    rng = random.Random(f"distorted {many}")
    right = submissions(rng.sample(assignments(), 2) if many < 100 else assignments())
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
    for idiom in EVERY:
        places = [None] if idiom.is_of_host else draft.kernels
        found += [mend for kernel in places for mend in idiom.mends(draft, kernel)]
    assert all(mend.line >= 1 for mend in found)


# --- what a rule says is true of the line -------------------------------------------------------------------------------


COUNTED = """\
@triton.jit
def kernel(x, out, n, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i * stride, mask=i < n, other=0)
    tl.atomic_add(out + v, 1)

def f(x):
    out = torch.zeros(9, dtype=torch.int32, device=x.device)
    kernel[(triton.cdiv(x.shape[0], 64),)](x, out, x.shape[0], x.stride(0), BLOCK=64)
    return out
"""


@pytest.mark.parametrize(("place", "said"), [("v", "take part too"), ("i", "go beyond what the tensors hold")])
def test_lanes_past_the_end_go_beyond_a_tensor_where_places_are_no_loaded_ones(place: str, said: str) -> None:
    sentences = [mend.sentence for mend in mends(COUNTED.replace("out + v", f"out + {place}"))]
    assert f"Line 5 has no mask, and lanes past the end {said}." in sentences


@pytest.mark.parametrize(("index", "line"), [("i * stride", None), ("i", 4)])
def test_a_load_that_goes_by_all_strides_does_not_take_its_tensor_for_contiguous(index: str, line: int | None) -> None:
    draft = Draft(COUNTED.replace("i * stride", index))
    assert loaded_in(draft, draft.launches[0].given["x"], rank=1) == (line, " kernel")
