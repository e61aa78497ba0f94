"""Patterns match what they say, and each idiom gives its example back."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradekit.repair.idioms.idiom import GENERAL, Idiom, idioms_of
from gradekit.repair.idioms.patterns import differences, edits, matches, parsed
from gradekit.repair.mend import Mend
from gradekit.source.draft import Draft
from gradekit.submission.parsed_source import ParsedSource
from tests.beside import beside
from tests.repair.corpora import ROOT

EXAMPLES = beside(__file__)
OF_ASSIGNMENTS = {path.parent.name: idioms_of(path) for path in sorted(ROOT.glob("assignments/*/idioms.toml"))}


def examples() -> Iterator[tuple[str, tuple[Idiom, ...], str]]:
    """Each idiom's name, with its variants and its example."""
    for id, idioms in {"general": idioms_of(GENERAL), **OF_ASSIGNMENTS}.items():
        for name in dict.fromkeys(idiom.name for idiom in idioms):
            yield name, tuple(idiom for idiom in idioms if idiom.name == name), EXAMPLES[id].get(name, "")


def mends_of(idiom: Idiom, text: str) -> list[Mend]:
    draft = Draft(text)
    if idiom.is_of_host:
        return list(idiom.mends(draft))
    return [mend for kernel in draft.kernels for mend in idiom.mends(draft, kernel)]


def side(example: str, other: str) -> str:
    """The text before a change (`other` is +) or after it (-)."""
    return "".join(f"{line[1:]}\n" for line in example.splitlines() if line[:1] != other)


@pytest.mark.parametrize(("idioms", "example"), [pytest.param(*one, id=name) for name, *one in examples()])
def test_an_idiom_makes_of_the_first_half_of_its_example_the_second(idioms: tuple[Idiom, ...], example: str) -> None:
    wrong, right = side(example, "+"), ast.dump(ast.parse(side(example, "-")))
    assert wrong and ast.dump(ast.parse(wrong)) != right
    found = [mend for idiom in idioms for mend in mends_of(idiom, wrong)]
    (mend, *_) = [mend for mend in found if ast.dump(ast.parse(mend.applied(wrong))) == right]
    assert "$" not in mend.sentence + mend.hint and mend.applied(wrong).count("\n") == wrong.count("\n")


def found_in(pattern: str, text: str) -> list[dict[str, str]]:
    """What the holes stand for in each match with the whole of a text."""
    node: ast.AST | list[ast.stmt] = ast.parse(text).body
    wanted = parsed(pattern)
    if isinstance(wanted, ast.expr):
        node = ast.parse(text, mode="eval").body
    shown = lambda value: ", ".join(map(ast.unparse, value if isinstance(value, list) else [value]))
    return [{k: shown(v) for k, v in one.items() if isinstance(k, str)} for one in matches(wanted, node, {})]


@pytest.mark.parametrize(("pattern", "text", "wanted"), [
    ("$A - $A", "x - x", [{"A": "x"}]),
    ("$A - $A", "x - y", []),
    ("$A + 1", "1 + f(x)", [{"A": "f(x)"}]),
    ("min($A, 1)", "min(1, x)", [{"A": "x"}]),
    ("f($A, 1)", "f(1, x)", []),
    ("$A - 1", "1 - x", []),
    ("f($A, axis=$B)", "f(x, axis=0)", [{"A": "x", "B": "0"}]),
    ("f(b=$B, a=$A)", "f(a=1, b=2)", [{"A": "1", "B": "2"}]),
    ("f($A)", "f(x, axis=0)", []),
    ("f($A, $$$R)", "f(x, y, axis=0)", [{"A": "x", "many__R": "y, axis=0"}]),
    ("p + $A * s + $$$", "q * s + p + r", [{"A": "q", "many__": "r"}]),
    ("$K[$G]($$$, $P=$V)", "k[g](a=1, b=2)", [{"K": "k", "G": "g", "P": "a", "V": "1", "many__": "b=2"},
                                              {"K": "k", "G": "g", "P": "b", "V": "2", "many__": "a=1"}]),
    ("for $I in $R:\n    ...\n    $I = 0", "for i in x:\n    a\n    b\n    i = 0", [{"I": "i", "R": "x"}]),
    ("$A = $B\n$B = $A", "x = y\ny = x", [{"A": "x", "B": "y"}]),
    ("ctx.$A = $A", "ctx.p = p", [{"A": "p"}]),
    ("$A + 0", "x + False", []),
    ("$A * 2", "x * 2.0", [{"A": "x"}]),
])
def test_a_pattern_matches_what_it_says(pattern: str, text: str, wanted: list[dict[str, str]]) -> None:
    assert found_in(pattern, text) == wanted


@pytest.mark.parametrize(("before", "after", "text", "wanted"), [
    ("$A / $B", "$A / ($B - 1)", "mean = total / count", [("count", "(count - 1)")]),
    ("f($A, $B)", "f($B, $A)", "f(x, y)", [("x", "y"), ("y", "x")]),
    ("$A <= $B", "$A < $B", "i <= n", [("i <= n", "i < n")]),
    ("f($A)", "f($A, mask=m)", "f(x)", [("f(x)", "f(x, mask=m)")]),
    ("$A = $B", "$A = $B\n$A = 0", "x = y", [("", "; x = 0")]),
    ("$A * $B", "$A", "(x + 1) * 2", [("(x + 1) * 2", "x + 1")]),
])
def test_edits_are_as_small_as_what_differs(before: str, after: str, text: str, wanted: list[tuple[str, str]]) -> None:
    source = ParsedSource(text)
    first, second = parsed(before), parsed(after)
    whole = source.tree.body if isinstance(first, list) else next(n for n in ast.walk(source.tree) if isinstance(n, type(first)))
    made = edits(differences(first, second), next(iter(matches(first, whole, {}))), source)
    assert made is not None and [(source.between(one.start, one.end), one.new) for one in made] == wanted


@pytest.mark.parametrize(
    "table",
    ['before = "$A +"', 'before = "$A"\nrank = "first"\nfamily = "none"', 'before = "a = 1"\nafter = "a = 1\\nb = 2\\nc = 3"'],
)
def test_a_table_that_is_no_idiom_is_named(table: str, tmp_path: Path) -> None:
    path = tmp_path / "idioms.toml"
    whole = {"family": '"mask"', "rank": "3", "after": '"$A"', "says": '""', "hint": '""'}
    rest = "\n".join(f"{key} = {value}" for key, value in whole.items() if f"{key} =" not in table)
    path.write_text(f"[some_mistake]\n{table}\n{rest}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="some_mistake"):
        idioms_of(path)
