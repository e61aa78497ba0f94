"""The comparisons that host code makes, and which ways each has gone in the calls of a check.

Calls that are alike (dtypes, numbers of dimensions, contiguous or not) are followed once for each path through the host
code: the comparisons of that path are terms of sizes, and tell by themselves which of the other calls take it too.
"""

import functools
import hashlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gradekit.inputs.layouts import is_row_major, row_major
from gradekit.origins import TO_THE_SYSTEM, Condition, Explored, Origins
from gradekit.program import Argument, Scalar, View
from gradekit.prove.host_terms import Leaf, described, holds, leaves_in, polynomials, variable
from gradekit.prove.terms import Term
from gradekit.prove.value_of import Evaluation, Undefined
from gradekit.unseen import Limit

Kind = tuple[Any, ...]
"""What calls that are alike have in common: the entry, which gradients are wanted, and of each tensor its storage, its
dtype, its rank, and whether it is contiguous: as torch tells it, and in its strides of sizes of 1 too."""


@dataclass(frozen=True)
class TracedForm:
    """A call: `entry`, its arguments as views and scalars, the arguments that gradients are wanted of, and its upstream
    gradient; `key` is what the caller knows it by."""

    key: str
    entry: str
    args: tuple[Argument, ...]
    wanted: tuple[int, ...] = ()
    upstream: View | None = None

    @functools.cached_property
    def views(self) -> list[View]:
        """Its tensors, in order; the gradient of the result is the last."""
        return [a for a in self.args if isinstance(a, View)] + ([self.upstream] if self.upstream else [])

    @functools.cached_property
    def kind(self) -> Kind:
        """Equal for calls that are alike."""
        return (self.entry, self.wanted, *(map(_kind, (*self.args, *([self.upstream] if self.upstream else [])))))

    @functools.cached_property
    def leaves(self) -> dict[Leaf, int]:
        """The numbers that host code is given."""
        found: dict[Leaf, int] = {}
        for number, view in enumerate(self.views):
            found |= {("size", number, axis): n for axis, n in enumerate(view.shape)}
            found |= {("stride", number, axis): n for axis, n in enumerate(view.stride)}
            found["offset", number] = view.offset
        scalars = ((p, a.value) for p, a in enumerate(self.args) if isinstance(a, Scalar))
        return found | {("scalar", p): value for p, value in scalars if type(value) is int}

    @functools.cached_property
    def elements(self) -> int:
        """The elements of all its tensors."""
        return sum(view.numel for view in self.views)

    @functools.cached_property
    def is_plain(self) -> tuple[bool, ...]:
        """Of each tensor whether it is contiguous, as torch tells it."""
        return tuple(is_row_major(view.shape, view.stride) for view in self.views)

    @functools.cached_property
    def lies(self) -> tuple[tuple[int, ...], ...]:
        """Of each tensor how many dimensions it has, whether it is contiguous, as torch tells it, and whether it
        repeats elements; nothing where a dimension is 1, of which no stride counts."""
        counts = all(min(view.shape, default=2) > 1 for view in self.views)
        each = zip(self.views, self.is_plain, strict=True)
        return tuple((len(view.shape), plain, 0 in view.stride) for view, plain in each) if counts else ()

    @property
    def flags(self) -> tuple[tuple[int, bool], ...]:
        """The arguments that are true or false, by place."""
        scalars = ((place, arg.value) for place, arg in enumerate(self.args) if isinstance(arg, Scalar))
        return tuple((place, value) for place, value in scalars if isinstance(value, bool))

    @property
    def repeated(self) -> Iterator[tuple[int, int]]:
        """Each tensor, by number, with each dimension along which it repeats its elements."""
        for number, view in enumerate(self.views):
            pairs = enumerate(zip(view.shape, view.stride, strict=True))
            yield from ((number, axis) for axis, (size, step) in pairs if size > 1 and not step)

    @functools.cached_property
    def hides(self) -> int:
        """How much of its strides does not count, or repeats elements: 0 where that is nothing."""
        return sum(repeats for *_, repeats in self.lies) if self.lies else len(self.views)


def _kind(arg: Argument) -> Any:
    if isinstance(arg, View):
        plain = is_row_major(arg.shape, arg.stride), arg.stride == row_major(arg.shape)
        return arg.storage, arg.dtype, len(arg.shape), *plain
    value = arg.value if isinstance(arg, Scalar) else None
    return value if isinstance(value, bool) or value is None else type(value).__name__


@dataclass(frozen=True)
class HostBranch:
    """A comparison of host code: its line, and what it compares, as text. It is the same one with all dtypes and
    layouts."""

    line: int | None
    text: str

    def says(self, way: bool) -> str:
        """That it is true or false, as a sentence."""
        return f"{self.text} is {'true' if way else 'false'}"


@dataclass(frozen=True)
class Path:
    """A way through the host code, by what a call that took it has shown, its comparisons that depend on arguments, and
    the lines of those that are `opaque`, with what is."""

    form: TracedForm
    explored: Explored
    steps: tuple[tuple[Condition, HostBranch], ...]
    opaque: frozenset[tuple[int, str]] = frozenset()
    _values_of: dict[str, Sequence[Any]] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def origins(self) -> Origins:
        """The origins of its numbers."""
        return self.explored.origins

    @functools.cached_property
    def decisions(self) -> Hashable:
        """Equal for paths on which the same comparisons go the same way, whatever dtypes and layouts the calls have."""
        same = self._term
        return tuple((same(one.left), one.relation, same(one.right), one.held) for one, _ in self.steps)

    @functools.cached_property
    def launches(self) -> Hashable:
        """Equal for paths that launch the same with the same numbers."""
        return tuple(
            (one.kernel, *map(self._term, one.grid), *((name, self._term(number)) for name, number in one.names))
            for one in self.explored.launches
        )

    @property
    def way(self) -> Hashable:
        """Equal for paths on which the same comparisons go the same way and the same is launched."""
        return self.decisions, self.launches

    @functools.cached_property
    def content(self) -> bytes:
        """Equal for paths of calls of equal numbers that compare and launch the same, on whichever lines."""
        steps = [replace(condition, source=None) for condition, _ in self.steps]
        launched = [replace(launch, line=None) for launch in self.explored.launches]
        given = self.form.leaves, [view.storage for view in self.form.views]
        return hashlib.sha256(repr((given, self.origins.terms, steps, launched)).encode()).digest()

    def _term(self, number: int) -> Term | None:
        return self._terms[number] if 0 <= number < len(self._terms) else None

    @functools.cached_property
    def _terms(self) -> list[Term | None]:
        return polynomials(self.origins.terms, variable)

    @functools.cached_property
    def _asked(self) -> set[int]:
        """The terms that comparisons and launches ask for."""
        found = {number for condition, _ in self.steps for number in (condition.left, condition.right)}
        for launch in self.explored.launches:
            found |= {*launch.grid, *(number for _, number in launch.names)}
        return found

    def values(self, leaves: Mapping[Leaf, Any]) -> list[Any]:
        """The values of the terms that are asked for, for the numbers that host code is given; None of any that is not
        known."""
        worked = Evaluation({variable(leaf).atom or "": value for leaf, value in leaves.items()})
        return [self._value(number, worked) for number in range(len(self._terms))]

    def _value(self, number: int, worked: Evaluation) -> Any:
        term = self._terms[number] if number in self._asked else None
        try:
            return worked.term(term) if term is not None else None
        except Undefined:
            return None

    def held(self, values: Sequence[Any]) -> list[Any]:
        """For each comparison whether it goes as it did, by the terms' values; None where that is not known."""
        each = ((holds(condition, values), condition.held) for condition, _ in self.steps)
        return [None if found is None else found == held for found, held in each]

    def gaps(self, values: Sequence[Any]) -> list[Any]:
        """For each comparison with a number above 1 how far it is from where it turns: 0 is the last with which it is
        true, and -1 the first with which it is false; None for others."""
        return [self._gap(condition, values) for condition, _ in self.steps]

    def _gap(self, condition: Condition, values: Sequence[Any]) -> Any:
        sides = condition.left, condition.right
        if condition.relation == "==" or not any(map(self._is_limit, sides)):
            return None
        left, right = (values[n] if 0 <= n < len(values) else None for n in sides)
        return None if left is None or right is None else right - left - int(condition.relation == "<")

    def is_below(self, step: int) -> bool:
        """Whether a comparison is with a number, and went the way of smaller ones."""
        condition = self.steps[step][0]
        return condition.relation != "==" and self._is_limit(condition.right if condition.held else condition.left)

    def _is_limit(self, number: int) -> bool:
        terms = self.origins.terms
        match terms[number] if 0 <= number < len(terms) else None:
            case ("number", int(value)):
                return value > 1
        return False

    @functools.cached_property
    def asked_of_layout(self) -> list[int]:
        """The comparisons, by number, that depend on strides or offsets, and not on sizes alone."""
        terms = self.origins.terms
        leaves = [leaves_in(terms, condition.left, condition.right) for condition, _ in self.steps]
        return [step for step, each in enumerate(leaves) if any(leaf[0] in ("stride", "offset") for leaf in each)]

    @functools.cached_property
    def strided(self) -> list[int]:
        """The tensors, by number, whose strides host code is given as numbers of their own: they are not contiguous,
        and no tensor before them is the same."""
        views = self.form.views
        return [n for n, one in enumerate(views) if one.stride != row_major(one.shape) and views.index(one) == n]

    def taken_by(self, form: TracedForm) -> bool:
        """Whether a call that is alike takes this path too, as far as comparisons tell."""
        return all(went is not False for went in self.held(self.values_of(form)))

    def values_of(self, form: TracedForm) -> Sequence[Any]:
        """`values` for a call that is alike, worked out once."""
        if form.key not in self._values_of:
            self._values_of[form.key] = self.values(form.leaves)
        return self._values_of[form.key]


Explore = Callable[[TracedForm], "Explored | None"]
"""Gives what host code compares in a call; None where that cannot be known."""


@dataclass
class HostBranches:
    """The branches that a check has met, each with the ways that it has gone. `names` are those of the tensors and
    scalars of an entry's domain; `known` the paths that calls took, whichever check made them; `beyond` the limits
    that a call has gone beyond, not only up to, and `ended` those that one has gone up to from below, each with how its
    tensors lie; `laid_out` are their ways with each tensor and how it lies, of calls whose strides count: they matter
    where layouts decide (`by_layout`);
    `opaque` are conditions on numbers whose origin was lost: a line, and what; `asked` are lines that turned to the
    system, and how."""

    explore: Explore
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    known: dict[str, Path | None] = field(default_factory=dict)
    ways: dict[HostBranch, set[bool]] = field(default_factory=dict)
    beyond: set[HostBranch] = field(default_factory=set)
    ended: set[Hashable] = field(default_factory=set)
    laid_out: set[Hashable] = field(default_factory=set)
    by_layout: bool = False
    _paths: dict[Kind, list[Path]] = field(default_factory=dict)
    opaque: set[tuple[int, str]] = field(default_factory=set)
    asked: set[tuple[int, str]] = field(default_factory=set)
    _path_of: dict[str, Path] = field(default_factory=dict)

    def look_at(self, forms: Sequence[TracedForm]) -> list[Path]:
        """Notes which ways the branches go in these calls; the paths that they take."""
        taken: dict[int, Path] = {}
        for form in sorted(forms, key=lambda f: (f.elements == 0, self.by_layout and f.hides, f.elements, f.key)):
            if (path := self.path_of(form)) is None:
                continue
            taken[id(path)] = path
            self.by_layout |= bool(path.asked_of_layout)
            for (condition, branch), gap in zip(path.steps, path.gaps(path.values_of(form)), strict=True):
                self.ways.setdefault(branch, set()).add(condition.held)
                self.laid_out.update((branch, condition.held, one) for one in enumerate(form.lies))
                if not condition.held and gap != -1:
                    self.beyond.add(branch)
                if gap in (0, -1):
                    self.ended.add(((branch, path.form.is_plain), condition.held))
        return list(taken.values())

    def unseen(self, condition: Condition, branch: HostBranch) -> bool:
        """Whether no call has gone the other way at this comparison, or one has where both sides are equal alone."""
        ways = self.ways.get(branch, ())
        return len(ways) == 1 or condition.held and len(ways) == 2 and branch not in self.beyond

    @property
    def known_paths(self) -> list[Path]:
        """All that calls of the check have taken."""
        return [path for known in self._paths.values() for path in known]

    def asking(self, branch: HostBranch) -> list[tuple[Path, int]]:
        """The paths that make a comparison, each with its step there."""
        return [(path, step) for path in self.known_paths for step, (_, its) in enumerate(path.steps) if its == branch]

    def unseen_so(self, path: Path, step: int) -> set[Hashable]:
        """Where layouts decide, the tensors that lie in the path's call as in none that has (`TracedForm.lies`)."""
        condition, branch = path.steps[step]
        told = enumerate(path.form.lies if self.by_layout else ())
        asked: set[Hashable] = {(branch, not condition.held, one) for one in told}
        return asked - self.laid_out

    def path_of(self, form: TracedForm) -> Path | None:
        """The path that a call has taken; None where that is not known."""
        if form.key not in self._path_of:
            known = self._paths.setdefault(form.kind, [])
            path = next((path for path in known if path.taken_by(form)), None)
            if path is None and len(known) < Limit.PATHS:
                path = self.known[form.key] = self.known[form.key] if form.key in self.known else self._new_path(form)
                known += [path] if path is not None else []
            if path is None:
                return None
            self.asked |= {one for one in path.explored.left if one[1] in TO_THE_SYSTEM}
            self.opaque |= path.opaque
            self._path_of[form.key] = path
        return self._path_of[form.key]

    def _new_path(self, form: TracedForm) -> Path | None:
        if (explored := self.explore(form)) is None:
            return None
        steps, opaque, terms = list[tuple[Condition, HostBranch]](), set[tuple[int, str]](), explored.origins.terms
        for condition in explored.origins.conditions[: Limit.COMPARISONS]:
            if condition.source is None:  # what no line asks is asserted, and goes one way alone
                continue
            leaves = leaves_in(terms, condition.left, condition.right)
            if ("opaque",) in leaves:
                opaque.add((condition.source.line, "a comparison with a number that is not followed"))
            elif leaves:
                steps.append((condition, HostBranch(condition.source.line, self._described(form, terms, condition))))
        return Path(form, explored, tuple(steps), frozenset(opaque))

    def _described(self, form: TracedForm, terms: Sequence[Leaf], condition: Condition) -> str:
        names = self.names.get(form.entry, ())

        def name(leaf: Leaf) -> str:
            kind, number, *axis = leaf
            called = names[int(number)] if int(number) < len(names) else f"argument {int(number) + 1}"
            if kind == "scalar":
                return called
            tensors = [p for p, arg in enumerate(form.args) if isinstance(arg, View)]
            at = tensors[int(number)] if int(number) < len(tensors) else len(names)
            called = names[at] if at < len(names) else "the gradient of the result"
            if kind == "offset":
                return f"{called}.storage_offset()"
            return f"{called}.shape[{axis[0]}]" if kind == "size" else f"{called}.stride({axis[0]})"

        left, right = (described(terms, n, name) for n in (condition.left, condition.right))
        return f"{left} {condition.relation} {right}"
