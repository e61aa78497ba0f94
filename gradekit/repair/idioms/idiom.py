"""Idioms as data: what beginners write, what belongs there, and what to say of it.

A table of an idioms.toml, called after the mistake:

    [next_tile]
    family = "loop"                                what the mend is about (mend.Family)
    rank = 6                                       lower for what is more specific
    before = "min($S, $P * $B)"                    what stands there (see patterns), by default anywhere in a kernel;
    at = "address"                                 or else at one of PLACES
    after = "min($S, ($P + 1) * $B)"               what belongs there; a list, to try several
    where = ["P is program"]                       conditions (see roles); a hole that only `after` and these have
                                                   stands for each name of the kernel in turn that they allow
    with = ["$P = tl.program_id($A)"]              what must stand in the same kernel, too; `without`: what must not
    and = [["$B % $N", "$B // $N"]]                what is put in the place of something else in the same kernel
    says = "The loop ends at `$it` (line $line)."  $it is all that was matched
    line = "B"                                     the line to blame: where a hole stands, or the name in it is made
    hint = "the tile ends at ($P + 1) * $B"
    cause = "missing-mask"                         where what was seen does not say it as well
    together = true                                also all mends with the same hint at once
    variants = [{ rank = 9, where = [...] }]       the same once more, with other keys

Those of an assignment alone stand in its own folder, beside domain.toml.
"""

import ast
import itertools
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from gradekit.causes import Cause
from gradekit.repair.idioms.patterns import Difference, Found, differences, edits, holes, matches, parsed
from gradekit.repair.idioms.roles import Scope, holds
from gradekit.repair.mend import Family, Mend
from gradekit.repair.work import Limit
from gradekit.source.draft import Draft
from gradekit.source.kernel import KernelDraft, counter_of, target_of, value_of
from gradekit.submission.parsed_source import Edit, blocks_of

GENERAL = Path(__file__).with_name("idioms.toml")

Pattern = list[ast.stmt] | ast.expr
Root = tuple[Any, Found]


@dataclass(frozen=True)
class Idiom:
    """One table of an idioms.toml, or a variant of it."""

    name: str
    family: Family
    rank: int
    at: str
    before: Pattern
    changes: tuple[tuple[Difference, ...], ...]
    where: tuple[str, ...]
    also: tuple[Pattern, ...]
    without: tuple[Pattern, ...]
    says: str
    hint: str
    cause: Cause | None
    line: str
    most: int
    together: bool

    @property
    def is_of_host(self) -> bool:
        """Whether it is looked for in host code."""
        return self.at in ON_HOST

    def mends(self, draft: Draft, kernel: KernelDraft | None = None) -> Iterator[Mend]:
        """The mends of a kernel, or of host code; those that give one advice also `together`, if the idiom says so."""
        every = [mend for scope, root in PLACES[self.at](self, draft, kernel) for mend in self._at(scope, root)]
        yield from every
        for hint in dict.fromkeys(mend.hint for mend in every) if self.together else ():
            alike = [mend for mend in every if mend.hint == hint]
            if len(alike) > 1:
                every_edit = tuple(dict.fromkeys(edit for mend in alike for edit in mend.edits))
                says = " ".join(dict.fromkeys(mend.sentence for mend in alike))
                yield replace(alike[0], rank=self.rank + 1, edits=every_edit, sentence=says)

    def _at(self, scope: Scope, root: Root) -> list[Mend]:
        node, known = root
        made: dict[tuple[Edit, ...], Mend] = {}
        for mend in (mend for found in self._found(scope, node, known) for mend in self._mends(scope, node, found)):
            made.setdefault(mend.edits, mend)
            if len(made) == self.most:
                break
        return list(made.values())

    def _found(self, scope: Scope, node: Any, known: Found) -> Iterator[Found]:
        root = node[0] if isinstance(node, list) else node
        for found in matches(self.before, node, {"it": root, **known}):
            around = {**_around(scope, root), **found}
            if self._hold(scope, around):
                for one in self._beside(self.also, scope, around):
                    yield from self._chosen(scope, one)

    def _hold(self, scope: Scope, found: Found) -> bool:
        """Whether no condition fails of what is matched so far."""
        return all(holds(" ".join(words), scope, found) for words in self._asked if not _open(words, found))

    def _beside(self, patterns: Sequence[Pattern], scope: Scope, found: Found) -> Iterator[Found]:
        if not patterns:
            yield found
            return
        for one in _anywhere(patterns[0], scope, found):
            if self._hold(scope, one):
                yield from self._beside(patterns[1:], scope, one)

    def _chosen(self, scope: Scope, found: Found) -> Iterator[Found]:
        """With a choice for each hole that has matched nothing, where all conditions hold."""
        free = [hole for hole in self._named if hole not in found]
        for choice in itertools.product(*(self._choices(hole, scope, found) for hole in free)):
            chosen = {**found, **dict(zip(free, choice, strict=True))}
            barred = (one for pattern in self.without for one in _anywhere(pattern, scope, chosen))
            if self._hold(scope, chosen) and next(barred, None) is None:
                yield chosen

    @cached_property
    def _asked(self) -> list[list[str]]:
        return [condition.split() for condition in self.where]

    @cached_property
    def _named(self) -> list[str]:
        """The holes of what is put there, and the subjects of conditions, each once."""
        put = sorted({name for changes in self.changes for change in changes for name in holes(change.new)})
        return list(dict.fromkeys([*put, *(words[0] for words in self._asked)]))

    def _choices(self, hole: str, scope: Scope, found: Found) -> Sequence[ast.expr]:
        every: list[ast.expr] = [ast.Name(name, ast.Load()) for name in scope.names]
        if scope.launch is not None:
            every = list({scope.text(value): value for value in scope.launch.given.values()}.values())
        return [one for one in every if self._hold(scope, {**found, hole: one})]

    def _mends(self, scope: Scope, node: Any, found: Found) -> Iterator[Mend]:
        for changes in self.changes:
            made = edits(changes, found, scope.draft.source)
            if made:
                at = scope.draft.source.line(made[0].start)
                line = _made_at(scope, found[self.line]) if self.line else at
                says, hint = (_told(text, scope, found, line) for text in (self.says, self.hint))
                kernel = scope.kernel.name if scope.kernel is not None else ""
                yield Mend(self.family, self.rank, line, made, says, hint, self.cause, kernel)


def _open(words: Sequence[str], found: Found) -> bool:
    """Whether a condition asks about a hole that has matched nothing yet."""
    return any(word.isalpha() and word.isupper() and word not in found for word in words)


def _around(scope: Scope, node: ast.AST) -> Found:
    """What the statement around a node of a kernel computes, and the counter and the body of the loop around it."""
    if scope.kernel is None or not isinstance(node, ast.expr) or node not in scope.kernel.parents:
        return {"KERNELS": ast.Module([kernel.node for kernel in scope.draft.kernels], [])}
    statement = scope.kernel.statement(node)
    known: dict[str, ast.AST] = {"STATEMENT": value_of(statement) or statement}
    loop = scope.kernel.in_loop(node)
    if loop is not None and counter_of(loop):
        known["COUNTER"] = ast.Name(counter_of(loop), ast.Load())
        known["BODY"] = ast.Module(loop.body, [])
    return known


def _made_at(scope: Scope, node: Any) -> int:
    """The line where a name gets its value, if that is one (in host code the last before); else the node's own."""
    if scope.kernel is not None:
        values = scope.kernel.values.get(scope.name(node), ())
    else:
        made = [one for one in scope.draft.source.on_host if isinstance(one, ast.Assign) and _assigns(one, node)]
        values = [one.value for one in made if one.lineno <= node.lineno][-1:]
    return int(values[0].lineno if len(values) == 1 else node.lineno)


def _told(text: str, scope: Scope, found: Found, line: int) -> str:
    def new(match: re.Match[str]) -> str:
        if match[1]:
            return str(found[match[2]].lineno)
        return str(line) if match[2] == "line" else scope.text(found[match[2]])

    return re.sub(r"\$(line\.)?(\w+)", new, text)


# --- places ----------------------------------------------------------------------------------------------------------


def _anywhere(pattern: Pattern, scope: Scope, found: Found) -> Iterator[Found]:
    """The matches in the kernel that a scope is about, or else in host code; of a launch, in both."""
    kernels = [scope.kernel] if scope.launch is None else [scope.launch.kernel, None]
    for node in (node for kernel in kernels for node in _roots(pattern, scope.draft, kernel)):
        yield from matches(pattern, node, found)


def _roots(pattern: Pattern, draft: Draft, kernel: KernelDraft | None) -> Sequence[Any]:
    """The expressions that a pattern may match, by their types; where it is of statements, these and those behind."""
    by_type, blocks = _by_type(kernel or draft)
    if isinstance(pattern, ast.expr):
        return by_type[type(pattern)]
    kinds = {type(pattern[0])}
    starts = [block[place:] for block in blocks for place in range(len(block)) if type(block[place]) in kinds]
    return [start[: _length(pattern, start)] for start in starts]


@lru_cache(maxsize=64)
def _by_type(part: KernelDraft | Draft) -> tuple[Mapping[type, list[ast.AST]], list[list[ast.stmt]]]:
    nodes = part.nodes if isinstance(part, KernelDraft) else part.source.on_host
    functions = [part.node] if isinstance(part, KernelDraft) else part.source.host
    by_type: dict[type, list[ast.AST]] = defaultdict(list)
    for node in nodes:
        by_type[type(node)].append(node)
    return by_type, blocks_of([*functions, *(node for node in nodes if not isinstance(node, ast.FunctionDef))])


Places = Callable[[Idiom, Draft, KernelDraft | None], Iterator[tuple[Scope, Root]]]


def _everywhere(idiom: Idiom, draft: Draft, kernel: KernelDraft | None) -> Iterator[tuple[Scope, Root]]:
    for node in _roots(idiom.before, draft, kernel):
        yield Scope(draft, kernel), (node, {})


def _length(pattern: Sequence[ast.stmt], nodes: Sequence[ast.stmt]) -> int:
    """How many statements a pattern without gaps takes; all where it has gaps at its own level."""
    has_gap = any(isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) for one in pattern)
    return len(nodes) if has_gap else len(pattern)


def _accesses(idiom: Idiom, draft: Draft, kernel: KernelDraft | None) -> Iterator[tuple[Scope, Root]]:
    """Addresses, and what is stored there, each with the pointer."""
    assert kernel is not None
    for access in kernel.accesses:
        node = kernel.resolved(access.address) if idiom.at == "address" else access.value
        if node is not None and access.pointer:
            yield Scope(draft, kernel), (node, {"POINTER": ast.Name(access.pointer, ast.Load())})


def _launches(idiom: Idiom, draft: Draft, _: KernelDraft | None) -> Iterator[tuple[Scope, Root]]:
    """Of each launch the parts of its grid, what it passes for a parameter, or all of it: as
    `KERNEL[grid](PARAM=..., ...)`, however it is written."""
    for launch in draft.launches:
        scope, grid = Scope(draft, launch=launch), draft.grid_of(launch)
        kernel = ast.Name(launch.kernel.name, ast.Load())
        if idiom.at == "in grid":
            named = (value_of(n) for part in ast.walk(grid) for n in draft.source.on_host if _assigns(n, part))
            roots = [(part, {"KERNEL": kernel}) for one in (grid, *named) if one for part in ast.walk(one)]
        elif idiom.at == "argument":
            given = launch.given.items()
            roots = [(value, {"KERNEL": kernel, "PARAM": ast.Name(param, ast.Load())}) for param, value in given]
        else:
            keywords = [ast.keyword(param, value) for param, value in launch.given.items()]
            whole = ast.Call(ast.Subscript(kernel, grid, ast.Load()), [], keywords)
            roots = [(ast.copy_location(whole, launch.call), {"KERNEL": kernel})]
        yield from ((scope, root) for root in roots)


def _assigns(statement: ast.AST, name: ast.AST) -> bool:
    return isinstance(name, ast.Name) and target_of(statement) == name.id


PLACES: dict[str, Places] = {
    "kernel": _everywhere, "host": _everywhere, "address": _accesses, "stored": _accesses,
    "in grid": _launches, "argument": _launches, "launch": _launches,
}  # fmt: skip
ON_HOST = ("host", "in grid", "argument", "launch")


# --- reading ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def idioms_of(path: Path) -> tuple[Idiom, ...]:
    """The idioms of a file, none where there is no file. Raises ValueError for a table that is not an idiom's,
    which the message names."""
    tables = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return tuple(one for name, table in tables.items() for one in _variants(name, table))


def _variants(name: str, table: Mapping[str, Any]) -> Iterator[Idiom]:
    base = {key: value for key, value in table.items() if key != "variants"}
    for more in ({}, *table.get("variants", ())):
        try:
            yield _idiom(name, {**base, **more})
        except (SyntaxError, KeyError, ValueError, TypeError) as error:
            raise ValueError(f"idiom {name}: {error!r}") from error


def _idiom(name: str, table: Mapping[str, Any]) -> Idiom:
    texts = table["after"] if isinstance(table["after"], list) else [table["after"]]
    before, afters = parsed(table["before"]), [parsed(text) for text in texts]
    pairs = enumerate(table.get("and", ()))
    more = [(parsed(old, f"and_{n}"), parsed(new, f"and_{n}")) for n, (old, new) in pairs]
    beside = lambda key: tuple(parsed(text, f"{key}_{n}") for n, text in enumerate(table.get(key, ())))
    besides = [one for old, new in more for one in differences(old, new)]
    return Idiom(
        name, Family(table["family"]), table["rank"], table.get("at", "kernel"), before,
        tuple((*differences(before, after), *besides) for after in afters), tuple(table.get("where", ())),
(*beside("with"), *(old for old, _ in more)), beside("without"),
        table["says"], table["hint"], Cause(table["cause"]) if "cause" in table else None, table.get("line", ""),
        table.get("most", Limit.OF_AN_IDIOM), table.get("together", False),
    )  # fmt: skip
