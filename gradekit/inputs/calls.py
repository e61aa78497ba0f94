"""Calls of an entry, as a Hypothesis strategy made from its domain: what test functions are given.

    add = domain_of(__file__)["add"]

    @given(call=calls(add, dtypes=["float32"], sizes={"N": [127, 128, 129]}, layouts=["contiguous"]))
    def test_boundary_sizes(submission, call):
        assert_close(submission.add(*call), expected(*call))

Before Hypothesis draws, a check runs the rows of the strategy's covering design (see `draws`).
"""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from gradekit import domain
from gradekit.domain import ANY_DIMENSIONS, EntryDomain
from gradekit.inputs.classes import SizeClass, classes, listed
from gradekit.inputs.draws import UPSTREAM, Call, Draws
from gradekit.inputs.layouts import LAYOUTS
from gradekit.schemas import nearest

AT_MOST = 1 << 16  # elements of the largest tensor of an example, where a test says nothing

Sizes = int | tuple[int, int] | Sequence[int]  # one size, an inclusive range, or a list of sizes that are all run


def domain_of(file: str | Path) -> dict[str, EntryDomain]:
    """The domain of the assignment whose test `file` lies beside it: `domain_of(__file__)["softmax"]`. Raises
    DomainError where its domain.toml is missing or wrong."""
    return domain.load(Path(file).resolve().parent / "domain.toml")


def calls(
    entry: EntryDomain,
    *,
    dtypes: Sequence[str] | None = None,
    sizes: Mapping[str, Sizes] | None = None,
    layouts: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    values: Sequence[str] | Mapping[str, Sequence[Any]] | None = None,
    others: Mapping[str, Sequence[Any]] | None = None,
    upstream: Sequence[str] | None = None,
    how: Mapping[str, Any] | None = None,
) -> st.SearchStrategy[Call]:
    """Calls within the domain of `entry`, each a tuple of arguments in the order of its signature.

    What is not said is as the domain has it.

    Args:
        dtypes: of the dtype variable, where there is one.
        sizes: for each size (and for "...") one size, a range as a tuple, or a list of sizes that are all run.
        layouts: for all tensors, or for each by its name; layouts that the domain does not allow leave
            themselves out. One variant of a layout is "expanded:0".
        values: kinds of values for all tensors, or by name; a name may be several with spaces between, whose kinds go
            together, as a list of tuples. Kinds with parameters in the domain stay as they are.
        others: values of scalars and choices, by name; optional scalars are left out where they are not named.
        upstream: kinds of values of the gradient of the result, which is then the last argument.
        how: `at_most`, the elements of the largest tensor; `ranks`, the numbers of dimensions that have no name;
            `derive`, functions that compute derived sizes; `aliases`, pairs of tensors ("x residual") that may be one
            or overlap, as the domain's `aliases` has them: the second is then laid out and filled as the first.

    Raises:
        ValueError: a name that the domain does not have, or a size that it does not promise.
    """
    sized, chosen, more = dict(sizes or {}), dict(others or {}), {"at_most": AT_MOST, **(how or {})}
    ranks = _ranks(entry, more.pop("ranks", None))
    free = frozenset(size.name for size in entry.sizes.values() if size.name not in sized and not size.only)
    drawn = Draws(
        entry, repr(entry), tuple((name, tuple(dtypes or options)) for name, options in entry.dtypes.items()), ranks,
        tuple((s.name, _classes(s, sized.pop(s.name, None))) for s in entry.sizes.values() if not s.derived),
        tuple((name, tuple(chosen.pop(name, options))) for name, options in entry.choices.items()),
        _layouts(entry, layouts, upstream), _values(entry, values, upstream), _scalars(entry, chosen),
        upstream=upstream is not None, free=free, **more,
    )  # fmt: skip
    if sized or chosen:
        raise ValueError(f"{entry.name} has no {', '.join([*sized, *chosen])}")
    least = min(drawn.elements({}, rank) for rank in ranks or (0,))
    if least > drawn.at_most:
        raise ValueError(f"{entry.name}: these sizes make tensors of {least:,} elements; at_most is {drawn.at_most:,}")
    strategy = _drawn(drawn)
    strategy.draws = drawn  # type: ignore[attr-defined]
    return strategy


def draws_of(strategy: Any) -> Draws | None:
    """What a strategy that `calls` has made draws from; None for any other."""
    found = getattr(strategy, "draws", None)
    return found if isinstance(found, Draws) else None


@st.composite
def _drawn(draw: st.DrawFn, draws: Draws) -> Call:
    def pick(label: str, options: Sequence[Any]) -> Any:
        return options[draw(st.sampled_from(range(len(options))))] if len(options) > 1 else options[0]

    return draws.picked(pick)


# --- what is drawn from ----------------------------------------------------------------------------------------------


def _ranks(entry: EntryDomain, ranks: Sequence[int] | None) -> tuple[int, ...]:
    unnamed = entry.sizes.get(ANY_DIMENSIONS)
    if unnamed is None:
        return ()
    low, high = unnamed.dims
    return tuple(ranks if ranks is not None else range(low, high + 1))


def _classes(size: domain.SizeDomain, said: Sizes | None) -> tuple[SizeClass, ...]:
    if said is None and size.only:
        return listed(size.only)
    if said is None:
        said = size.least, min(size.drawn or size.most, size.most)
    chosen = [said, said] if isinstance(said, int) else said
    if not all(size.least <= n <= size.most and (not size.only or n in size.only) for n in chosen):
        raise ValueError(f"{size.name}: {said} is not promised; sizes are {size.least} to {size.most}")
    return classes(*chosen) if isinstance(chosen, tuple) else listed(sorted(set(chosen)))


def _layouts(
    entry: EntryDomain, said: Sequence[str] | Mapping[str, Sequence[str]] | None, upstream: Sequence[str] | None
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    legal = {tensor.name: tensor.layouts or LAYOUTS for tensor in entry.tensors}
    legal |= {UPSTREAM: LAYOUTS} if upstream is not None else {}
    _known(entry, said if isinstance(said, Mapping) else {}, legal)
    for one in itertools.chain(*said.values()) if isinstance(said, Mapping) else said or ():
        if one.partition(":")[0] not in LAYOUTS:
            raise ValueError(f"{entry.name}: there is no layout {one!r} ({nearest(one, LAYOUTS)})")

    def chosen(name: str) -> tuple[str, ...]:
        wanted = said.get(name) if isinstance(said, Mapping) else said
        names = legal[name]
        if wanted is None:
            return names
        variants = [one for one in wanted if ":" in one and one.partition(":")[0] in names]
        return (*(one for one in names if one in wanted or one.partition(":")[0] in wanted), *variants) or names[:1]

    return tuple((name, chosen(name)) for name in legal)


def _values(
    entry: EntryDomain, said: Sequence[str] | Mapping[str, Sequence[Any]] | None, upstream: Sequence[str] | None
) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    legal: dict[str, tuple[Any, ...]] = {tensor.name: tensor.values for tensor in entry.tensors}
    legal |= {UPSTREAM: tuple(upstream)} if upstream is not None else {}
    by_name = said if isinstance(said, Mapping) else {}
    _known(entry, [name for names in by_name for name in names.split()], legal)
    together = {name: names for names in by_name for name in names.split()}
    ranged = {tensor.name for tensor in entry.tensors if tensor.range is not None}
    found: dict[str, tuple[Any, ...]] = {}
    for name, kinds in legal.items():
        fixed = any("{" in kind for kind in kinds) or name == UPSTREAM or name in ranged
        if name in together:
            found[together[name]] = tuple(by_name[together[name]])
        else:
            found[name] = kinds if fixed or said is None or isinstance(said, Mapping) else tuple(said)
    return tuple(found.items())


def _scalars(entry: EntryDomain, others: dict[str, Sequence[Any]]) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    wanted = [scalar for scalar in entry.scalars if not scalar.optional or scalar.name in others]
    return tuple((scalar.name, tuple(others.pop(scalar.name, scalar.values))) for scalar in wanted)


def _known(entry: EntryDomain, names: Any, known: Mapping[str, Any]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"{entry.name} has no tensor {', '.join(unknown)}; it has {', '.join(known)}")
