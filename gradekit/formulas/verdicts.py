"""The verdict on one call: equal to its reference for all values, different at values that are to be tried, or open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gradekit.formulas.both_sides import FormulaCall, ResultFormulas, result_formulas
from gradekit.formulas.equality import Equality, Unequal, ValuePromises, Values, distinguishing
from gradekit.formulas.graph import NoFormula
from gradekit.formulas.normal import ValuePath

MOST_TRIED = 8
"""Choices of values that are tried for one call."""
MOST_ELEMENTS_TRIED = 4
"""Unequal elements of a result for which values are looked for."""

FAULT = "a fault of gradekit's"
PROVED, REFUTED, OPEN = "proved", "refuted", "open"


@dataclass
class ValueVerdict:
    """What is known of a call's values: `elements` of its results and `regions` of values
    were compared. `why` it is open."""

    verdict: str
    elements: int = 0
    regions: int = 0
    why: str = ""
    tried: int = 0

    def as_data(self) -> dict[str, Any]:
        """As the report record holds it."""
        data = {"verdict": self.verdict, "elements": self.elements, "regions": self.regions, "tried": self.tried}
        return data | ({"why": self.why} if self.why else {})


Differs = Callable[[Values], bool]
"""Whether the engine, judged as usual, finds the results wrong for values of these variables."""


def judged(
    call: FormulaCall,
    reference: tuple[Callable[..., Any], Sequence[Any], Sequence[int | None]],
    promises: ValuePromises,
    differs: Differs,
) -> ValueVerdict:
    """The verdict on `call`, whose reference is a function, its arguments, and which of these are tensors of the call.

    What `differs` does not confirm is open: nobody is accused by a formula.
    """
    verdict = ValueVerdict(OPEN)
    try:
        for pair in result_formulas(call, *reference):
            verdict.elements += len(pair.found)
            if _refuted(pair, promises, differs, verdict):
                verdict.verdict, verdict.why = REFUTED, ""
                return verdict
    except NoFormula as error:
        verdict.why = str(error)
    except Exception as error:  # noqa: BLE001 - what goes wrong here is no fault of the submission, whose examples stand
        verdict.why = f"{FAULT} ({type(error).__name__}: {str(error)[:80]})"
    verdict.verdict = OPEN if verdict.why else PROVED
    return verdict


def _refuted(pair: ResultFormulas, promises: ValuePromises, differs: Differs, verdict: ValueVerdict) -> bool:
    equality = Equality(pair.graph)
    equality.tell_reference(pair.expected)
    try:
        for values in _choices(pair, equality, promises, verdict):
            verdict.tried += 1
            if differs(values):
                return True
            if verdict.tried >= MOST_TRIED:
                break
    finally:
        verdict.regions += equality.regions
    return False


def _choices(
    pair: ResultFormulas, equality: Equality, promises: ValuePromises, verdict: ValueVerdict
) -> Iterator[Values]:
    """Values at which elements differ; where elements are not known to be equal, the verdict says so."""
    unequal = 0
    for one, other in zip(pair.found, pair.expected, strict=True):
        for where, why, decided in _doubtful(equality, one, other):
            unequal += 1
            verdict.why = why
            yield from distinguishing(equality, where, promises)
            if unequal >= MOST_ELEMENTS_TRIED or not decided:
                return


def _doubtful(equality: Equality, one: int, other: int) -> Iterator[tuple[Unequal, str, bool]]:
    """The regions in which two formulas are not known to be equal, why, and whether their normal forms say so."""
    try:
        for where in equality.unequal(one, other):
            yield where, "the formulas are not known to be equal, and no values were found that tell them apart", True
    except NoFormula as error:
        yield Unequal(one, other, ValuePath()), str(error), False
