"""Where a kernel goes wrong beyond the sizes that are promised: the first 32-bit number that wraps around there.

That costs nobody a point. It is looked for in the first access of each kernel that is proved, for sizes whose promise
ends only where no tensor is larger (`ELEMENTS`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gradekit.prove import question as q
from gradekit.prove.claims import PROGRAM, LaunchClaims
from gradekit.prove.parts import Substitution, atoms
from gradekit.prove.question import ProofVerdict
from gradekit.prove.setting import ELEMENTS
from gradekit.prove.symbolic_access import Owed, SymbolicAccess, in_order
from gradekit.prove.symbolic_host import INT32
from gradekit.prove.terms import Atom, Term, Truth, at_most, less, of_atom, term, var

LARGEST = 1 << 40
BEYOND = " beyond"


def beyond(launched: LaunchClaims, proved: set[tuple[int | None, str]]) -> Iterator[ProofVerdict]:
    """At most one refutation, for sizes that are not promised; `proved` are lines and subjects of accesses inside."""
    for access in launched.accesses:
        verdict = launched.verdict(q.WRAP, access, q.REFUTED)
        if not verdict.exact or (access.line, verdict.subject) not in proved:
            continue
        for owed in in_order(access.owed | access.owed_always):
            if owed.high != INT32 or owed.value.range[1] is not None and owed.value.range[1] <= INT32:
                continue
            found = _wraps(launched, access, owed)
            if found is not None:
                yield found
                return


def _wraps(launched: LaunchClaims, access: SymbolicAccess, owed: Owed) -> ProofVerdict | None:
    """The access at sizes for which `owed` does not hold where memory is touched."""
    wide = Substitution(_widened)
    grid = [less(p, wide.term(g)) for p, g in zip(PROGRAM, launched.started.grid, strict=True)]
    narrow = [
        at_most(wide.term(of_atom(a)), term(INT32)) for a in atoms(owed.value).values() if a.op == "var" and _is_size(a)
    ]
    where: list[Truth] = [*grid, *narrow, wide.truth(owed.path), wide.truth(access.active)]
    answer = launched.solver.ask_once(where, at_most(wide.term(owed.value), term(INT32)))
    if answer.verdict != q.REFUTED:
        return None
    values = {key.replace(BEYOND, ""): value for key, value in answer.values.items()}
    verdict = launched.verdict(q.WRAP, access, q.REFUTED, values=type(answer)(answer.verdict, values))
    return replace(verdict, line=owed.line or verdict.line)


def _is_size(atom: Atom) -> bool:
    name = str(atom.args[0])
    return not name.startswith(("program ", "@", "turn ", "before "))


def _widened(atom: Atom) -> Term | None:
    if atom.op != "var" or not _is_size(atom) or atom.range[1] != ELEMENTS:
        return None
    return var(f"{atom.args[0]}{BEYOND}", atom.range[0], LARGEST)
