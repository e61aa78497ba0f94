"""Whether a result is right, and in which way it is not: shape, dtype, NaN, infinities and values are told apart."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import torch

from gradekit.causes import BY_CHANCE
from gradekit.engine.memory import index_of
from gradekit.findings import Cause, Finding
from gradekit.inputs.spec import Input, values_of
from gradekit.judge.comparison import Comparison, bits_of
from gradekit.judge.contents import Results
from gradekit.judge.failure import Failure, Idle, sentence
from gradekit.judge.reference import Reference
from gradekit.reuse import SharedCache, shared

_STOPPED = (Cause.BUDGET_EXCEEDED, Cause.DEVICE_ASSERT)  # findings after which a run has no result worth comparing

OnRight = Callable[[Any, list[Reference]], None]  # is told of a result that is right, and of what was expected

_on_right: ContextVar[OnRight | None] = ContextVar("who is told of right results", default=None)


@contextlib.contextmanager
def telling(on_right: OnRight) -> Iterator[None]:
    """While open, `on_right` is told of each result that is right."""
    token = _on_right.set(on_right)
    try:
        yield
    finally:
        _on_right.reset(token)


def assert_close(actual: Any, expected: Reference | Sequence[Reference], *, up_to: UpTo | None = None) -> None:
    """Raise unless `actual` (an observation, a tensor or several) is `expected` within its allowance, `up_to` a choice
    that the task leaves free (gradekit.judge.compare).

    An observation may have `variants`, the same call in other configurations or on a card, and the `circumstance` of
    each: all must be right, and none of them by chance. Raises Failure with the evidence, where type, shape, dtype or
    values are wrong, a run was stopped, or the results are right and may not be the next time.
    """
    wanted = [expected] if isinstance(expected, Reference) else list(expected)
    idle: Idle | None = getattr(actual, "idle", None)
    try:
        _assert_each(actual, wanted, up_to)
    except Failure as failure:
        raise failure if idle is None else idle.failure(failure) from None
    if idle is not None:
        idle.is_right = True
    if up_to is None and (on_right := _on_right.get()) is not None:
        on_right(actual, wanted)


def _assert_each(actual: Any, wanted: list[Reference], up_to: UpTo | None) -> None:
    for one in (actual, *getattr(actual, "variants", ())):
        try:
            _assert_one(one, wanted, up_to)
        except Failure as failure:
            circumstance = getattr(one, "circumstance", "")
            if not circumstance:
                raise
            raise failure.naming(f"{_upper(circumstance)}: ") from None


def _assert_one(actual: Any, wanted: list[Reference], up_to: UpTo | None) -> None:
    _assert_finished(getattr(actual, "findings", ()))
    claim = _claim(actual, wanted) if up_to is None else None
    if claim is None or _right.get(claim) is None:
        _assert_results(actual, wanted, up_to)
        if claim is not None:
            _right.put(claim, True)
    _assert_not_by_chance(actual)


def _claim(actual: Any, wanted: list[Reference]) -> Hashable | None:
    """That the results are right: what decides it, or None where that is not known."""
    contents = getattr(getattr(actual, "results", None), "contents", None)
    if contents is None or getattr(actual, "substitute", None) is not None or any(r.key is None for r in wanted):
        return None
    return contents, tuple(reference.key for reference in wanted)


_right: SharedCache[Hashable, bool] = shared(1 << 17)  # claims that turned out to be true


def _assert_results(actual: Any, wanted: list[Reference], up_to: UpTo | None) -> None:
    results = _results(actual, wanted)
    results = results if up_to is None else up_to(results, wanted)
    for number, (result, reference) in enumerate(zip(results, wanted, strict=True)):
        what = "the result" if len(wanted) == 1 else f"result {number}"
        try:
            _assert_same_form(result, reference, what)
            comparison = Comparison(result, reference)
            if comparison.wrong_count:
                raise wrong_values(comparison, what)
        except Failure as failure:
            failure.facts |= {"result": number} if len(wanted) > 1 else {}
            raise


def _assert_not_by_chance(actual: Any) -> None:
    """Where it is left to chance what a run computes, its results were right by luck."""
    if getattr(actual, "mutate", None) is not None:
        return
    for finding in getattr(actual, "findings", ()):
        if finding.cause.traits & BY_CHANCE:
            message = f"{sentence(finding)} The result is right here by luck: on a GPU it may differ."
            raise Failure(finding.cause, message, line=finding.line, facts=dict(finding.facts))


def _assert_finished(findings: Sequence[Finding]) -> None:
    for finding in findings:
        if finding.cause in _STOPPED:
            raise Failure(finding.cause, sentence(finding), line=finding.line, facts=dict(finding.facts))


def _results(actual: Any, wanted: list[Reference]) -> list[Any]:
    substitute = getattr(actual, "substitute", None)
    if substitute is not None:
        return list(substitute([reference.rounded for reference in wanted]))
    results = getattr(actual, "results", actual)
    results = list(results) if isinstance(results, (list, tuple, Results)) else [results]
    if len(results) != len(wanted):
        raise Failure(Cause.WRONG_TYPE, f"{len(results)} results came back, and there must be {len(wanted)}.")
    return results


def _assert_same_form(result: Any, reference: Reference, what: str) -> None:
    native = reference.native
    if not isinstance(result, torch.Tensor):
        hint = ". Is there a return at the end?" if result is None else "."
        found = "None" if result is None else f"of Python's type {type(result).__name__}"
        raise Failure(Cause.WRONG_TYPE, f"{_upper(what)} must be a tensor, and is {found}{hint}")
    if result.shape != native.shape:
        mine, wanted = list(result.shape), list(native.shape)
        said = f"{_upper(what)} has shape {mine}, and must have {wanted}."
        raise Failure(Cause.WRONG_SHAPE, said, facts={"shape": mine, "expected_shape": wanted})
    if result.dtype != native.dtype:
        name, expected = _name(result.dtype), _name(native.dtype)
        said = f"{_upper(what)} is {name}, and must be {expected}."
        raise Failure(Cause.WRONG_DTYPE, said, facts={"dtype": name, "expected_dtype": expected})


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# --- what the student reads -------------------------------------------------------------------------------------------


def wrong_values(comparison: Comparison, what: str) -> Failure:
    """The failure of a comparison that has wrong elements; `what` names the result."""
    cause = Cause.NAN if bool(comparison.nan.any()) else Cause.WRONG_VALUES
    facts = summary(comparison)
    native = comparison.reference.native
    where = f"At shape {list(native.shape)}, {_name(native.dtype)}" if native.shape else f"At {_name(native.dtype)}"
    sentences = [f"{where}: {_count(facts, what)}, {_first(facts)}.", _worst(facts), _extent(facts), _own(comparison)]
    return Failure(cause, " ".join(s for s in sentences if s), facts=facts, comparison=comparison)


def summary(comparison: Comparison) -> dict[str, Any]:
    """The comparison as facts for a report, JSON-codable; numbers that may be NaN or infinite are strings. `along` says
    for each dimension how many of its indices have a wrong element, and the first and the last of them."""
    wrong, error = comparison.wrong, comparison.error
    first, worst = (index_of(int(each.flatten().argmax()), wrong.shape) for each in (wrong.to(torch.uint8), error))
    return {
        "wrong": comparison.wrong_count, "total": wrong.numel(), "nan": int(comparison.nan.sum()),
        "inf": int(comparison.inf.sum()), "first": _element(comparison, first), "worst": _element(comparison, worst),
        "along": [_along(wrong, dim) for dim in range(wrong.dim())],
    }  # fmt: skip


def _element(comparison: Comparison, index: tuple[int, ...]) -> dict[str, Any]:
    got, expected = (_with_bits(comparison, of[index]) for of in (comparison.actual, comparison.reference.rounded))
    off = {"allowed": show(comparison.reference.allowance[index]), "in_allowances": f"{comparison.error[index]:.3g}"}
    return {"index": list(index), "got": got, "expected": expected} | off


def _along(wrong: torch.Tensor, dim: int) -> dict[str, int]:
    hit = wrong.movedim(dim, 0).flatten(1).any(1) if wrong.dim() > 1 else wrong
    where = hit.nonzero().flatten()
    return {"indices": len(where), "of": len(hit), "first": int(where[0]), "last": int(where[-1])}


def _with_bits(comparison: Comparison, value: torch.Tensor) -> str:
    if not (comparison.is_copied and value.isnan()):
        return show(value)
    return f"{show(value)} ({int(bits_of(value)) % (1 << 8 * value.itemsize):x})"


def show(value: torch.Tensor, digits: int = 6) -> str:
    """One element in few digits: "0.03125", "-inf", "7"."""
    number = value.item()
    return f"{number:.{digits}g}" if isinstance(number, float) else str(number)


def _own(comparison: Comparison) -> str:
    """What a check allows by a tolerance of its own, and why."""
    asked = comparison.reference.asked
    return getattr(asked.options.get("bound"), "why", "") if asked else ""


def _count(facts: dict[str, Any], what: str) -> str:
    kind = "wrong"
    for special, name in (("inf", "infinite"), ("nan", "NaN")):
        if facts[special]:
            every = facts[special] == facts["wrong"]
            kind = f"{name} and must not be" if every else f"wrong, {facts[special]} of them {name}"
    if facts["total"] == 1:
        return f"{what} is {kind}"
    whose = "" if what == "the result" else f" of {what}"
    return f"{facts['wrong']} of {facts['total']} elements{whose} {'is' if facts['wrong'] == 1 else 'are'} {kind}"


def _first(facts: dict[str, Any]) -> str:
    first = facts["first"]
    place = f"first at {first['index']}: " if facts["total"] > 1 else ""
    is_number = first["expected"][-1].isdigit()  # neither a truth value nor infinite
    is_nothing = is_number and 0 < abs(float(first["expected"])) < float(first["allowed"])  # what rounding leaves of 0
    return f"{place}got {first['got']}, expected {'about 0' if is_nothing else first['expected']}"


def _worst(facts: dict[str, Any]) -> str:
    worst = facts["worst"]
    if worst["index"] == facts["first"]["index"] or worst["in_allowances"] == "inf" or worst["allowed"] == "0":
        return ""
    times = worst["in_allowances"]
    times = f"{float(times):,.0f}" if "e+0" in times else times
    return (
        f"The worst is at {worst['index']}: got {worst['got']}, expected {worst['expected']}, "
        f"off by {times} times what rounding allows."
    )


def _extent(facts: dict[str, Any]) -> str:
    """Where the wrong elements are, if they are confined to some rows or columns."""
    rank = len(facts["along"])
    names = _ROWS_AND_COLUMNS if rank == 2 else [("index", "indices", f" of dimension {d}") for d in range(rank)]
    parts = [_confined(along, *words) for along, words in zip(facts["along"], names, strict=True)]
    parts = [p for p in parts if p and rank > 1]
    return f"All wrong elements are in {' and '.join(parts)}." if parts and facts["wrong"] > 1 else ""


_ROWS_AND_COLUMNS = [("row", "rows", ""), ("column", "columns", "")]


def _confined(along: dict[str, int], one: str, many: str, whose: str) -> str:
    count, first, last = along["indices"], along["first"], along["last"]
    if count == along["of"] or count != last - first + 1:
        return ""
    if last == along["of"] - 1:
        return (f"the last {one}" if count == 1 else f"the last {count} {many}") + whose
    return (f"{one} {first}" if count == 1 else f"{many} {first} to {last}") + whose


UpTo = Callable[[Sequence[Any], Sequence[Reference]], list[Any]]
"""Given results and what was expected, the results as if the free choice had been the reference's."""


def ties(x: Input | torch.Tensor, dim: int = -1, result: int = 1) -> UpTo:
    """Result number `result` has places in `x` along `dim`, which it may lack: any of several equal elements, but none
    of them twice."""
    values = values_of(x)

    def chosen(results: Sequence[Any], wanted: Sequence[Reference]) -> list[Any]:
        places, expected = results[result], wanted[result].native
        if not _alike(places, expected) or not places.numel():
            return list(results)
        mine, right = (one if one.dim() == values.dim() else one.unsqueeze(dim) for one in (places, expected))
        inside = mine.clamp(0, values.shape[dim] - 1)
        same = (inside == mine) & (values.gather(dim, inside.long()) == values.gather(dim, right.long()))
        twice = (mine.sort(dim).values.diff(dim=dim) == 0).any(dim, keepdim=True)
        chosen = torch.where(same & ~twice, right, mine).reshape(expected.shape)
        return [*results[:result], chosen, *results[result + 1 :]]

    return chosen


def any_order(dim: int = -1) -> UpTo:
    """The elements of each result may stand in any order along `dim`, and move together: as pairs, say."""

    def ordered(results: Sequence[Any], wanted: Sequence[Reference]) -> list[Any]:
        if not all(_alike(one, reference.native) for one, reference in zip(results, wanted, strict=True)):
            return list(results)
        back = _order([reference.rounded for reference in wanted], dim).argsort(dim)
        mine = _order(results, dim).gather(dim, back)
        return [one.gather(dim, mine) for one in results]

    return ordered


def _alike(result: Any, expected: torch.Tensor) -> bool:
    return isinstance(result, torch.Tensor) and result.shape == expected.shape and result.dtype == expected.dtype


def _order(results: Sequence[torch.Tensor], dim: int) -> torch.Tensor:
    """What sorts all results by the first, and where it has equal elements by the next."""
    order = torch.arange(results[0].shape[dim]).expand(results[0].movedim(dim, -1).shape).movedim(-1, dim)
    for result in reversed(results):
        order = order.gather(dim, result.gather(dim, order).argsort(dim=dim, stable=True))
    return order
