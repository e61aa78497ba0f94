"""A failing call as one Python file that can be sent to somebody: a function of record and submission."""

import ast
import re
import string
import textwrap
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from gradekit.report.text import clean, one_line, points

_EXPECTED = """\
from gradekit.assignment import get  # the right result comes from the assignment's tests

tests = get({assignment!r})
expected = module(tests.folder / {file!r}).{reference}
print("expected", expected)
compared(got, expected)
"""


class NoReplay(ValueError):
    """A check has no call that could be written down: one sentence with the reason."""


def chosen(record: Mapping[str, Any], name: str | None = None) -> Mapping[str, Any]:
    """The first check that failed with a call, of all or those called `name`. Raises NoReplay for none."""
    failed = [check for check in record["checks"] if check["outcome"] == "failed"]
    mine = [check for check in failed if name in (None, check["id"], check["id"].partition("[")[0])]
    found = next((check for check in mine if (check["counterexample"] or {}).get("call")), None)
    if found is None:
        raise NoReplay(f"no check {name or 'of this report'} failed with a call that could be written down")
    return found


def script(record: Mapping[str, Any], check: Mapping[str, Any], submission: str, name: str = "replay.py") -> str:
    """A Python program that makes the failing call of `check`, one of the record's, and shows what came and what should
    have. `submission` is the text that was checked, `name` what the program's own file is called."""
    counterexample = check["counterexample"]
    snippet = counterexample["snippet"].replace('"cuda"', "DEVICE")
    page = resources.files("gradekit.report").joinpath("pages/replay.txt").read_text(encoding="utf-8")
    text = string.Template(page).substitute(
        title=one_line(check["id"]), name=name, said=_text("\n".join(_said(record, check))),
        submission=_text(submission), snippet=snippet, call=_with_submission(counterexample["call"]),
        names=", ".join(_names(snippet)) + ",", check=", ".join(map(repr, _again(record, check))),
    )  # fmt: skip
    if counterexample.get("reference"):
        file, _, reference = counterexample["reference"].partition(".")
        return text + _EXPECTED.format(assignment=record["assignment"], file=f"{file}.py", reference=reference)
    if counterexample.get("expected"):
        return text + textwrap.dedent(f"""print("expected", "{", ".join(counterexample["expected"])}")\n""")
    return text


def _said(record: Mapping[str, Any], check: Mapping[str, Any]) -> Iterator[str]:
    used = record["environment"]
    versions = ", ".join(f"{name} {used[name]}" for name in ("gradekit", "torch", "triton") if used.get(name))
    yield f"{one_line(check['title'])}: {points(check['earned'])} of {points(check['possible'])} points"
    yield f"said     {clean(check['message'])}"
    yield from [f"hint     {one_line(check['hint'])}"] if check["hint"] else []
    yield f"checked  with {versions}, seed {record['seed']}"
    if check["kind"] == "memory":
        yield "memory   is watched with --check alone: here, a store outside of a tensor may end Python itself"


def _again(record: Mapping[str, Any], check: Mapping[str, Any]) -> list[str]:
    example = check["counterexample"].get("example")
    how = ["--inputs", example] if example else ["--seed", str(record["seed"])]
    return ["-a", record["assignment"], "-k", check["id"], *how]


def _text(text: str) -> str:
    """`text` as Python writes it: as it stands where it can be, raw where it has backslashes."""
    stands = "'''" not in text and not text.endswith(("'", "\\")) and re.sub(r"[\n\t]", "", text).isprintable()
    raw = "r" if "\\" in text else ""
    return f"{raw}'''{text}'''" if stands and text else repr(text)


def _names(snippet: str) -> list[str]:
    made = [each.targets[0] for each in ast.parse(snippet).body if isinstance(each, ast.Assign)]
    return [each.id for each in made if isinstance(each, ast.Name) and not each.id.startswith("storage_of_")]


def _with_submission(call: str) -> str:
    """`call`, with the submission's function by its full name: "torch.autograd.grad(f(x), [x], upstream)" too."""
    inner = call.removeprefix("torch.autograd.grad(")
    return f"{call[: len(call) - len(inner)]}submission.{inner}"
