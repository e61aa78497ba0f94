"""A failing call as a Python file: it runs by itself, and shows what came and what should have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gradekit.report.replay_script import NoReplay, chosen, script
from tests import zygote

from .samples import FAILED, PASSED, record

CALL = {
    "snippet": 'x = torch.tensor([1.0, 2.0], device="cuda")\nupstream = torch.tensor([1.0, 1.0], device="cuda")\nx.requires_grad_()',
    "call": "torch.autograd.grad(square(x), [x], upstream)",
    "reference": "test_square.slope(x, upstream)",
}
EXAMPLE = {**(FAILED.counterexample or {}), **CALL}


def test_the_file_calls_the_submission_and_the_reference(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def square(x):\n    return x * x * 3\n")
    (tmp_path / "test_square.py").write_text("def slope(x, upstream):\n    return (2 * x * upstream).detach()\n")
    check = replace(FAILED, counterexample=EXAMPLE)
    text = script(chosen(record(PASSED, check)), tmp_path / "mine.py", tmp_path)
    done = zygote.ran(["-c", text])
    assert done.stdout == "got      (tensor([ 6., 12.]),)\nexpected tensor([2., 4.])\n"


def test_without_a_reference_the_right_numbers_stand_in_the_file() -> None:
    example = {key: value for key, value in EXAMPLE.items() if key != "reference"} | {"expected": ["0.5", "-1.0"]}
    check = record(replace(FAILED, counterexample=example))["checks"][0]
    text = script(check, Path("mine.py"), Path())
    compile(text, "replay", "exec")
    assert 'print("expected", "0.5, -1.0")' in text and "test_square" not in text


def test_a_check_can_be_named() -> None:
    other = replace(FAILED, id="test_other", counterexample=EXAMPLE)
    both = record(replace(FAILED, counterexample=EXAMPLE), other)
    assert chosen(both)["id"] == FAILED.id and chosen(both, "test_other")["id"] == "test_other"


@pytest.mark.parametrize("name", [None, "test_small", "nothing"])
def test_what_did_not_fail_with_a_call_cannot_be_replayed(name: str | None) -> None:
    with pytest.raises(NoReplay, match="failed with a call"):
        chosen(record(PASSED, FAILED), name)
