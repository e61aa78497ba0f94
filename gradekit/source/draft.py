"""A submission's text: its kernels, and how its host code launches them."""

import ast
import itertools
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from gradekit.source.kernel import KernelDraft, head_of, names_of_steps, target_of, value_of
from gradekit.submission.parsed_source import ParsedSource, called


@dataclass(frozen=True)
class LaunchCall:
    """`kernel[grid](arguments)` in host code; `given` has the expression of each parameter, where that is known."""

    call: ast.Call
    kernel: KernelDraft
    grid: ast.expr
    given: dict[str, ast.expr]


class Draft:
    """A submission's text, read once, with `numbers` of its handout's formulas. Raises SyntaxError for no Python."""

    def __init__(self, text: str, numbers: Sequence[str] = ()) -> None:
        self.numbers = numbers
        self.source = ParsedSource(text)
        self.kernels = [KernelDraft(self.source, node) for node in self.source.kernels]
        for launch in self.launches:
            strides = (name for name, value in launch.given.items() if "stride(" in self.source.of(value))
            launch.kernel.known_strides.update(strides, _starred_strides(launch.call, launch.kernel))

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """The dimensions of the tensors whose shapes host code unpacks, or writes down where it allocates them."""
        found: dict[str, int] = {}
        for node in self.source.on_host:
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            value = node.value if isinstance(node, ast.Assign) else None
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Attribute) and value.attr == "shape":
                found[self.source.of(value.value)] = len(target.elts)
            elif isinstance(target, ast.Name) and isinstance(value, ast.Call) and called(value).startswith("torch."):
                shape = value.args[0] if value.args else None
                if isinstance(shape, ast.Tuple) and not any(isinstance(one, ast.Starred) for one in shape.elts):
                    found[target.id] = len(shape.elts)
        return found

    @cached_property
    def launches(self) -> list[LaunchCall]:
        """The launches of its kernels, in the order of the text."""
        by_name = {kernel.name: kernel for kernel in self.kernels}
        for node in self.source.on_host:  # compiled = kernel.warmup(...), which is then launched
            name, _, method = called(node.value).partition(".") if isinstance(node, ast.Assign) else ("", "", "")
            if name in by_name and method == "warmup" and target_of(node):
                by_name.setdefault(target_of(node), by_name[name])
        found = []
        for node in self.source.on_host:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
                kernel = by_name.get(_launched(node.func.value))
                if kernel is not None:
                    found.append(LaunchCall(node, kernel, node.func.slice, _given(node, kernel, self._ranks)))
        return found

    def grid_of(self, launch: LaunchCall) -> ast.expr:
        """The expression of a launch's grid: what a name or a lambda stands for."""
        grid = launch.grid
        if isinstance(grid, ast.Name):
            grid = next((v for n in self.source.on_host if target_of(n) == grid.id and (v := value_of(n))), grid)
        return grid.body if isinstance(grid, ast.Lambda) else grid

    @cached_property
    def never_launched(self) -> list[KernelDraft]:
        """The kernels that nothing mentions: no host code, and no other kernel."""
        mentioned = {node.id for node in ast.walk(self.source.tree) if isinstance(node, ast.Name)}
        mentioned |= {node.attr for node in ast.walk(self.source.tree) if isinstance(node, ast.Attribute)}
        return [kernel for kernel in self.kernels if kernel.name not in mentioned]

    def is_stored(self, name: str) -> bool:
        """Whether a kernel stores to what host code calls so, and does not only add to it."""
        stores = ((one, access) for one in self.launches for access in one.kernel.accesses if access.name == "tl.store")
        given = (one.given.get(access.pointer) for one, access in stores)
        return any(value is not None and self.source.of(value) == name for value in given)

    def launches_of(self, kernel: KernelDraft) -> list[LaunchCall]:
        """Those of one kernel."""
        return [launch for launch in self.launches if launch.kernel is kernel]


def numbers_of(handout: str) -> list[str]:
    """Numbers with five or more decimals, those like 1e-5, and roots as of 2 / pi, in a handout's code, each once."""
    code = re.findall(r"^ {4}.*$|`[^`\n]+`|```.*?```", handout, re.MULTILINE | re.DOTALL)
    form = r"(?<![\w.])(?:\d+\.\d{5,}|\d+e-\d+)\b"
    roots = [root for part in code for root in re.findall(r"(/ *)?sqrt\(([\d */]*\d|[\d */]*pi)\)", part)]
    numbers = [number for part in code for number in re.findall(form, part)]
    return list(dict.fromkeys([*numbers, *(_root(inside, bool(slash)) for slash, inside in roots)]))


def _root(inside: str, is_divisor: bool) -> str:
    """The square root of a product or quotient of numbers and pi, or 1 by that."""
    value = 1.0
    for sign, one in re.findall(r"([*/]?) *(\d+|pi)", inside):
        value *= (math.pi if one == "pi" else int(one)) ** (-1 if sign == "/" else 1)
    return repr(value ** (-0.5 if is_divisor else 0.5))


def stored_pointers(text: str) -> dict[str, dict[str, bool]]:
    """For each kernel of a source, its pointers in the order of its parameters, each with whether something is stored
    through it; nothing of a kernel with an access whose pointer is not seen, or of what is not Python."""
    return {k.name: {p: p in k.stored for p in k.params if p in k.pointers} for k in _clear_kernels(text)}


def loads_by_pointer(text: str) -> dict[str, tuple[int, ...]]:
    """For each kernel of a source, the line of the first load through each of its pointers, 0 where there is none, in
    the order of its parameters; nothing of a kernel with an access whose pointer is not seen."""
    return {k.name: tuple(k.first_loads.get(p, 0) for p in k.params if p in k.pointers) for k in _clear_kernels(text)}


@lru_cache(maxsize=1)
def draft_of(text: str) -> Draft | None:
    """None of what is not Python. Every check that fails asks about the same text."""
    try:
        return Draft(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _clear_kernels(text: str) -> list[KernelDraft]:
    """Those all of whose accesses go through a pointer that is seen."""
    draft = draft_of(text)
    every = draft.kernels if draft is not None else []
    return [kernel for kernel in every if all(access.pointer for access in kernel.accesses)]


def _launched(node: ast.expr) -> str:
    """The name of the kernel in `kernel[grid]`, or in `wrap_triton(kernel)[grid]`."""
    if called(node).rpartition(".")[2] == "wrap_triton" and isinstance(node, ast.Call) and node.args:
        node = node.args[0]
    return node.id if isinstance(node, ast.Name) else ""


def _given(call: ast.Call, kernel: KernelDraft, ranks: Mapping[str, int]) -> dict[str, ast.expr]:
    """The arguments by parameter; `*x.stride()` stands for what `ranks` knows, or an equal share."""
    named = {k.arg: k.value for k in call.keywords if k.arg}
    stands_for = _parameters_of_starred(call, len([p for p in kernel.all_params if p not in named]), ranks)
    if stands_for is None:
        call_args = list(itertools.takewhile(lambda one: not isinstance(one, ast.Starred), call.args))
    else:
        call_args = [one for argument in call.args for one in [argument] * stands_for.get(argument, 1)]
    found = dict(zip(kernel.all_params, call_args, strict=False)) | named
    is_open = any(keyword.arg is None for keyword in call.keywords)  # **sizes: which parameters it gives is not seen
    return _behind_the_last(call, kernel, named) | found if stands_for is None and not is_open else found


def _parameters_of_starred(call: ast.Call, params: int, ranks: Mapping[str, int]) -> dict[ast.expr, int] | None:
    """For how many of so many parameters each starred argument stands; None where that is not known."""
    starred = [argument for argument in call.args if isinstance(argument, ast.Starred)]
    room = params - (len(call.args) - len(starred))
    each = room // len(starred) if starred and room > 0 and room % len(starred) == 0 else 0
    if each or not starred:
        return dict.fromkeys(starred, each)
    known: dict[ast.expr, int] = {one: rank for one in starred if (rank := ranks.get(_strided(one))) is not None}
    open_, left = [one for one in starred if one not in known], room - sum(known.values())
    if (open_ and (left <= 0 or left % len(open_))) or (not open_ and left):
        return None
    return known | dict.fromkeys(open_, left // len(open_) if open_ else 0)


def _strided(argument: ast.Starred) -> str:
    return called(argument.value).removesuffix(".stride") if called(argument.value).endswith(".stride") else ""


def _starred_strides(call: ast.Call, kernel: KernelDraft) -> list[str]:
    """The parameters that `*x.stride(), *y.stride()` give together, where nothing else stands between."""
    places = [number for number, one in enumerate(call.args) if isinstance(one, ast.Starred)]
    between = call.args[places[0] : places[-1] + 1] if places else []
    if not all(isinstance(one, ast.Starred) and _strided(one) for one in between) or not between:
        return []
    open_ = [name for name in kernel.all_params if name not in {keyword.arg for keyword in call.keywords}]
    return open_[places[0] : len(open_) - (len(call.args) - 1 - places[-1])]


def _behind_the_last(call: ast.Call, kernel: KernelDraft, named: dict[str, ast.expr]) -> dict[str, ast.expr]:
    """The arguments after the last `*x.stride()`, for the last parameters that are not given by name."""
    last = max(number for number, argument in enumerate(call.args) if isinstance(argument, ast.Starred))
    after, open_ = call.args[last + 1 :], [p for p in kernel.all_params if p not in named]
    return dict(zip(open_[len(open_) - len(after) :], after, strict=True)) if len(after) < len(open_) else {}


# --- which lines of a kernel each of its results depends on: an edit elsewhere cannot mend it -------------------------


_HEADS = (ast.For, ast.While, ast.If)


def settled_lines(draft: Draft, wrong: Collection[str], right: Collection[str]) -> dict[str, set[int]]:
    """For each kernel the lines that an edit of which cannot mend results that are `wrong`, stored through pointers
    "kernel.pointer": nothing of these depends on them, or in another kernel, something does that is `right`."""
    found = {}
    for kernel in draft.kernels:
        if all(access.pointer for access in kernel.accesses):
            behind = {f"{kernel.name}.{pointer}": _lines_behind(kernel, pointer) for pointer in kernel.stored}
            mine = [lines for name, lines in behind.items() if name in wrong]
            every = set(lines_of(kernel.node))
            known = [lines for name, lines in behind.items() if name in right and name not in wrong]
            # of a kernel that stores what is wrong, a line may be right for another result and wrong for this one
            lines = every - set[int]().union(*mine) if mine else set[int]().union(*known)
            found[kernel.name] = _with_helpers(draft, kernel, lines)
    return found


def _with_helpers(draft: Draft, kernel: KernelDraft, lines: set[int]) -> set[int]:
    """Lines of a kernel, and those of the functions that no other of its lines calls."""
    functions, calls = {one.name: one for one in draft.kernels}, dict[str, set[int]]()
    every, found = [kernel], set(lines)
    for one in every:
        for node in (node for node in one.nodes if called(node) in functions):
            calls.setdefault(called(node), set()).add(getattr(node, "lineno", 0))
            every += [other for other in [functions[called(node)]] if other not in every]
    for one in every[1:]:  # each after one that calls it
        found |= set(lines_of(one.node)) if calls[one.name] <= found else set()
    return found


def leading_to(kernel: KernelDraft, lines: Collection[int]) -> set[ast.stmt]:
    """The statements that decide where the accesses on these lines go, and whether: they make the addresses and masks,
    or loops and conditions. All statements where no access is on one of the lines."""
    mine = [access for access in kernel.accesses if access.line in lines]
    if not mine:
        return set(kernel.statements)
    parts = [part for access in mine for part in (access.address, access.mask) if part is not None]
    return {*_heads(kernel), *_made_for(kernel, parts), *(kernel.statement(access.call) for access in mine)}


def making(text: str, line: int) -> frozenset[int]:
    """A line of a kernel, those that give its names their values, heads of loops around it, and launches."""
    draft = draft_of(text)
    found = {line}
    if draft is None:
        return frozenset(found)
    for kernel in draft.kernels:
        mine = [one for one in kernel.statements if not isinstance(one, _HEADS) and line in lines_of(one)]
        around = [loop for loop in kernel.loops if line in lines_of(loop)]
        names = {name for one in mine for name in kernel.names(one)}.union(*map(names_of_steps, around))
        found |= {loop.lineno for loop in around}
        values = [value for name in names for value in kernel.values.get(name, ())]
        launches = [launch.call for launch in draft.launches_of(kernel)] if mine or around else []
        found |= {one for node in (*values, *launches) for one in lines_of(node)}
    return frozenset(found)


def _lines_behind(kernel: KernelDraft, pointer: str) -> set[int]:
    """Those of the stores and of all that they are computed from, and those of loops and conditions always."""
    through = [access.call for access in kernel.accesses if access.pointer == pointer and not access.is_load]
    stores = [kernel.statement(call) for call in through]
    made = _made_for(kernel, stores)
    return {line for node in (*stores, *_heads(kernel).values(), *made) for line in lines_of(node)}


def _heads(kernel: KernelDraft) -> dict[ast.stmt, ast.expr]:
    found = [one for one in kernel.statements if isinstance(one, _HEADS)]
    return {one: one.test if isinstance(one, ast.If) else head_of(one) for one in found}


def _made_for(kernel: KernelDraft, nodes: Collection[ast.AST]) -> list[ast.stmt]:
    """The plain statements that make the names which these nodes, or a loop or a condition, are computed from."""
    names = {behind for node in (*nodes, *_heads(kernel).values()) for behind in kernel.origins(node)}
    return [s for s in kernel.statements if not isinstance(s, _HEADS) and names & _assigned(s)]


def lines_of(node: ast.AST) -> range:
    """The lines that a node stands on; of a loop or a branch, those of its body too."""
    first = getattr(node, "lineno", 1)
    return range(first, (getattr(node, "end_lineno", None) or first) + 1)


def _assigned(statement: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
