"""A failing call as a Python file: it runs by itself, and shows what came and what should have."""

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradekit.report.replay_script import NoReplay, chosen, script
from tests import zygote

from .samples import FAILED, PASSED, record

CALL = {
    "snippet": 'x = torch.tensor([1.0, 2.0], device="cuda")\nupstream = torch.tensor([1.0, 1.0], device="cuda")\nx.requires_grad_()',
    "call": "torch.autograd.grad(square(x), [x], upstream)", "reference": "test_square.slope(x, upstream)",
}
EXAMPLE = {**(FAILED.counterexample or {}), **CALL}


TEXT = "def square(x):\n    return x * x * 3\n"


def made(example: Any = EXAMPLE, text: str = TEXT, **changes: Any) -> str:
    """The program for a failed check with this counterexample."""
    found = record(replace(FAILED, counterexample=example, **changes)) | {"assignment": "square"}
    return script(found, chosen(found), text)


def test_the_file_says_what_was_said_and_calls_the_submission_and_the_reference(tmp_path: Path) -> None:
    (tmp_path / "square").mkdir()
    (tmp_path / "square" / "assignment.toml").write_text('summary = "Squares"\ntitle = "Square"\nentry = "square"\n')
    (tmp_path / "square" / "test_square.py").write_text("def slope(x, upstream):\n    return (2 * x * upstream).detach()\n")
    (tmp_path / "next.py").write_text(TEXT.replace("3", "1"))
    text = f"import os\nos.environ['GRADEKIT_ASSIGNMENTS'] = {str(tmp_path)!r}\n{made()}"
    ran = zygote.ran(["-c", text])
    assert not ran.stderr, ran.stderr[-1500:]
    done = ran.stdout
    assert FAILED.message in done and "differ   2 of 2, first [0]: 6, 2\n" in done
    assert "got      (tensor([ 6., 12.]),)\nexpected tensor([2., 4.])\n" in done
    (tmp_path / "replay.py").write_text(text)
    mended = zygote.ran([str(tmp_path / "replay.py"), str(tmp_path / "next.py")]).stdout
    assert mended.endswith("differ   not by more than rounding\n")


def test_the_file_names_no_path_of_this_machine() -> None:
    assert str(Path.home()) not in made() and "/tmp/" not in made()


@pytest.mark.parametrize("text", [TEXT, "s = '\\n'\n" + TEXT, "s = '''x'''\n" + TEXT, TEXT + "\\", "\r\n" + TEXT, "'"])
def test_the_submission_stands_in_the_file_to_the_last_character(text: str) -> None:
    tree = ast.parse(made(text=text))
    (found,) = [each.value for each in tree.body if isinstance(each, ast.Assign) and ast.unparse(each.targets) == "SUBMISSION"]
    assert ast.literal_eval(found) == text


def test_memory_around_the_inputs_and_unwritten_results_are_nan() -> None:
    text = "import torch\ndef square(x):\n    print(x.as_strided((4,), (1,), x.storage_offset() - 1), torch.empty(1))\n    return x"
    example = {"inputs": [], "replay": "", "snippet": 'x = torch.tensor([1.0, 2.0], device="cuda")', "call": "square(x)"}
    assert "tensor([nan, 1., 2., nan]) tensor([nan])" in zygote.ran(["-c", made(example, text)]).stdout


def test_without_a_reference_the_right_numbers_stand_in_the_file() -> None:
    example = {key: value for key, value in EXAMPLE.items() if key != "reference"} | {"expected": ["0.5", "-1.0"]}
    text = made(example)
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
