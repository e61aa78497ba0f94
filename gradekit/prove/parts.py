"""Going over terms and conditions: their atoms, with others in their place, and as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gradekit.prove.terms import (
    ZERO,
    Atom,
    Monomial,
    Term,
    Truth,
    at_most,
    both,
    choose,
    div,
    equal,
    free,
    mod,
    negated,
    of_atom,
    power,
    term,
)

Change = Callable[[Atom], Term | None]


class Substitution:
    """Terms and conditions with atoms replaced by what `change` gives for them (None: left as it is)."""

    def __init__(self, change: Change) -> None:
        self._change, self._known = change, dict[str, Term]()
        self._truths: dict[str, Truth] = {}

    def term(self, value: Term) -> Term:
        """`value` with its atoms replaced."""
        found = ZERO
        kept: dict[Monomial, int] = {}
        for mono, factor in value.parts.items():
            replaced = [(atom, self._atom(atom)) for atom in mono]
            if all(new is None for _, new in replaced):
                kept[mono] = factor
                continue
            product = term(factor)
            for atom, new in replaced:
                product = product * (of_atom(atom) if new is None else new)
            found = found + product
        return (found + Term(kept)) if found.parts else Term(kept)

    def truth(self, value: Truth) -> Truth:
        """`value` with its atoms replaced."""
        if value.key not in self._truths:
            self._truths[value.key] = self._truth(value)
        return self._truths[value.key]

    def _truth(self, value: Truth) -> Truth:
        match value.op:
            case "le":
                return at_most(self.term(value.args[0]), ZERO)
            case "eq":
                return equal(self.term(value.args[0]), ZERO)
            case "not":
                return negated(self.truth(value.args[0]))
            case "and":
                return both(*map(self.truth, value.args))
            case "free":
                new = self._change(Atom("free", value.args))
                return value if new is None else free(show(new))
        return value

    def _atom(self, atom: Atom) -> Term | None:
        if atom.key not in self._known:
            new = self._change(atom)
            self._known[atom.key] = self._rebuilt(atom) if new is None else new
        new = self._known[atom.key]
        return None if new.parts == {(atom,): 1} else new

    def _rebuilt(self, atom: Atom) -> Term:
        args = [self._part(arg) for arg in atom.args]
        if all(a is b for a, b in zip(args, atom.args, strict=True)):
            return of_atom(atom)
        return rebuild(atom, args)

    def _part(self, part: Any) -> Any:
        if isinstance(part, Term):
            new: Any = self.term(part)
        elif isinstance(part, Truth):
            new = self.truth(part)
        else:
            return part
        return part if new == part else new


def rebuild(atom: Atom, args: list[Any]) -> Term:
    """The operation of `atom` on other arguments."""
    makers: dict[str, Callable[..., Term]] = {"div": div, "mod": mod, "choose": choose, "power": power}
    maker = makers.get(atom.op)
    return maker(*args) if maker else of_atom(Atom(atom.op, tuple(args), atom.range))


def atoms(*values: Term | Truth) -> dict[str, Atom]:
    """Every atom anywhere in the values, by key; those that an atom is made of stand before it."""
    found: dict[str, Atom] = {}
    seen: set[int] = set()
    for value in values:
        _collect(value, found, seen)
    return found


def _collect(value: Any, found: dict[str, Atom], seen: set[int]) -> None:
    """`seen` has what was looked through, for values are made of one another many times."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Term):
        for mono in value.parts:
            for atom in mono:
                _collect(atom, found, seen)
    elif isinstance(value, Truth) or isinstance(value, Atom) and value.key not in found:
        for arg in value.args:
            _collect(arg, found, seen)
        if isinstance(value, Atom):
            found[value.key] = value


def parts_of(condition: Truth) -> tuple[Truth, ...]:
    """Those of a conjunction; any other condition alone."""
    return condition.args if condition.op == "and" else () if condition.op == "true" else (condition,)


def alone(goal: Truth) -> Iterator[Truth]:
    """Conditions that hold together exactly where `goal` does: the parts of a conjunction, and of a bound that the
    smaller (or greater) of two must keep, the same for each of the two."""
    if goal.op == "and":
        for part in goal.args:
            yield from alone(part)
        return
    for mono, factor in goal.args[0].parts.items() if goal.op == "le" else ():
        atom = mono[0] if len(mono) == 1 else None
        if atom is not None and atom.op == "choose" and _is_extreme(atom, smaller=factor < 0):
            for side in atom.args[1:]:
                yield from alone(at_most(goal.args[0] + (side - of_atom(atom)) * factor, ZERO))
            return
    yield goal


def _is_extreme(atom: Atom, smaller: bool) -> bool:
    condition, yes, no = atom.args
    return bool(condition == (at_most(yes, no) if smaller else at_most(no, yes)))


def show(value: Term) -> str:
    """The term as a person writes it, for messages and tests."""
    pieces = []
    for mono, factor in value.parts.items():
        names = [_show_atom(atom) for atom in mono]
        pieces.append(" * ".join([*([str(factor)] if factor != 1 or not names else []), *names]))
    return " + ".join(pieces) or "0"


def _show_atom(atom: Atom) -> str:
    if atom.op == "var":
        return str(atom.args[0])
    return f"{atom.op}({', '.join(show(a) if isinstance(a, Term) else '?' for a in atom.args)})"
