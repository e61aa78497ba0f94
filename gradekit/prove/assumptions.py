"""An assignment's domain as what a proof may take for granted: sizes by name, their ranges, limits, ranges of data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradekit import domain
from gradekit.program import Argument, View
from gradekit.prove.parts import atoms
from gradekit.prove.setting import ELEMENTS, Promise
from gradekit.prove.terms import (
    FALSE,
    TRUE,
    Atom,
    Term,
    Truth,
    at_most,
    both,
    equal,
    less,
    negated,
    of_atom,
    term,
    var,
)


def promise_of(entry: domain.EntryDomain, args: Sequence[Argument]) -> Promise:
    """What `entry` promises of a call like `args`; an argument after those of the entry is the gradient of its
    result."""
    described: list[Any] = [*entry.arguments, *entry.results]
    sizes: dict[str, Term] = {name: _size(size) for name, size in entry.sizes.items() if name != domain.ANY_DIMENSIONS}
    pairs = enumerate(zip(args, described, strict=False))
    shapes = {n: _shape(what.shape, entry, sizes, len(arg.shape)) for n, (arg, what) in pairs if isinstance(arg, View)}
    limits = [_truth(limit, sizes) for limit in entry.limits]
    limits += [one_of(sizes[name], size.only) for name, size in entry.sizes.items() if size.only and name in sizes]
    scalars = {s.name: _scalar(s, sizes) for s in entry.scalars if s.type == "int"}
    limits += [one_of(scalars[s.name], _values(s, sizes)) for s in entry.scalars if s.type == "int" and s.is_computed]
    return Promise(shapes, tuple(limits), scalars)


def _size(size: domain.SizeDomain) -> Term:
    return var(size.name, max(size.least, 1), min(size.most, ELEMENTS))


def _scalar(scalar: domain.ScalarDomain, sizes: Mapping[str, Term]) -> Term:
    """A whole scalar: what the sizes make it, or a variable in its range."""
    if scalar.is_computed and len(scalar.values) == 1:
        return _values(scalar, sizes)[0]
    least, most = (None if end is None else int(end) for end in (scalar.least, scalar.most))
    return var(scalar.name, least, most)


def _values(scalar: domain.ScalarDomain, sizes: Mapping[str, Term]) -> list[Term]:
    return [term(domain.evaluate(value, sizes)) for value in scalar.values]


def _shape(parts: Sequence[str], entry: domain.EntryDomain, sizes: Mapping[str, Term], rank: int) -> tuple[Term, ...]:
    """The sizes of a tensor of that rank."""
    found: list[Term] = []
    for part in parts:
        if part == domain.ANY_DIMENSIONS:
            unnamed = rank - len(parts) + 1
            size = entry.sizes[part]
            found += [var(f"dimension {axis}", max(size.least, 1), min(size.most, ELEMENTS)) for axis in range(unnamed)]
        else:
            found.append(term(domain.evaluate(part, sizes)))
    return tuple(found)


def one_of(size: Term, only: Sequence[int | Term]) -> Truth:
    """That a size is one of these."""
    return negated(both(*(negated(equal(size, term(n))) for n in only)))


def _truth(limit: str, sizes: Mapping[str, Term]) -> Truth:
    found = domain.evaluate(limit, sizes)
    return found if isinstance(found, Truth) else TRUE if found else FALSE


# --- what tensors hold -----------------------------------------------------------------------------------------------


def contents(
    entry: domain.EntryDomain, sizes: Mapping[str, Term], reads: Mapping[str, str], *values: Term | Truth
) -> list[Truth]:
    """What the domain says of the numbers that `values` read from tensors; `reads` has the argument's name
    for each name by which terms read."""
    tensors = {tensor.name: tensor for tensor in entry.tensors}
    found: list[Truth] = []
    mine = [a for a in atoms(*values).values() if a.op == "read" and len(a.args) == 2 and str(a.args[0]) in reads]
    for atom in mine:
        tensor = tensors.get(reads[str(atom.args[0])])
        if tensor is not None and tensor.range is not None:
            low, high = (term(domain.evaluate(end, sizes)) for end in tensor.range)
            found += [at_most(low, of_atom(atom)), at_most(of_atom(atom), high)]
    for a in mine:
        for b in mine:
            tensor = tensors.get(reads[str(a.args[0])])
            if a is not b and a.args[0] == b.args[0] and tensor is not None and tensor.ascending:
                found.append(_rises(a, b))
    return found


def _rises(a: Atom, b: Atom) -> Truth:
    """What stands no further on is no larger."""
    return negated(both(at_most(a.args[1], b.args[1]), less(of_atom(b), of_atom(a))))
