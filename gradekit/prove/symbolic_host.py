"""What host code did, as terms over the sizes of its inputs: read from a program's
origins, and compared with its numbers.

Origins come from the submission's process and may say anything. A term is believed only where it gives the number that
the program has, for the sizes with which it was traced and for those of every other traced call that takes the same
path.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from gradekit.domain import MOST_ELEMENTS
from gradekit.origins import Origins, ViewOrigin
from gradekit.program import ITEMSIZE, Launch, Program, Scalar, View
from gradekit.prove.host_terms import OPAQUE, Leaf, holds, polynomials
from gradekit.prove.setting import Setting, extent, with_fixed
from gradekit.prove.terms import INT32, ONE, Atom, Term, Truth, atoms, both, equal, of_atom, term
from gradekit.prove.value_of import Evaluation, Undefined, value_of


class NotFollowed(Exception):
    """The origins do not explain the program: why."""


@dataclass(frozen=True)
class StorageRegion:
    """`count` elements of `itemsize` bytes, seen as `sizes` and `strides`, from `start` in the program's count."""

    storage: int
    itemsize: int
    count: Term
    sizes: tuple[Term, ...]
    strides: tuple[Term, ...]
    start: int
    is_input: bool


@dataclass(frozen=True)
class Started:
    """A launch: its step, the terms of its grid, and of each argument that is an integer (None for others)."""

    step: Launch
    grid: tuple[Term, ...]
    args: tuple[Term | None, ...]


class SymbolicHost:
    """`path` holds where host code does as it did; `regions` are storages. Raises NotFollowed for malformed origins."""

    def __init__(self, program: Program, origins: Origins, setting: Setting) -> None:
        fixed = _fixed(origins, _terms(origins, setting))
        self.program, self.setting, self.origins = program, with_fixed(setting, fixed), origins
        self.terms = _terms(self.origins, self.setting)
        self.fixed = [equal(of_atom(atom), value) for atom, value in fixed.items()]
        self.views: dict[object, ViewOrigin] = {}
        for origin in self.origins.views:
            known = self.views.setdefault(_key(origin.view), origin)
            if self._geometry(known) != self._geometry(origin):
                raise NotFollowed("a view has sizes that may be one thing or another")
        self.launches = tuple(self._launches())
        self.regions = self._regions()
        bounds = [region.count <= MOST_ELEMENTS for region in self.regions.values()]
        self.path = both(*self.setting.hypotheses, *bounds, *self._conditions(), *self.fixed, *self._types())
        self.check(program, setting.values)

    @cached_property
    def names(self) -> dict[int, str]:
        """What the student calls each storage."""
        shapes = zip(self.program.inputs, self.setting.tensors, strict=True)
        called = {view.storage: shape.name for view, shape in shapes}
        results = [r.storage for r in self.program.results if isinstance(r, View) and r.storage not in called]
        numbered = enumerate(dict.fromkeys(results), 1)
        return called | {s: "the result" if len(results) == 1 else f"result {number}" for number, s in numbered}

    # --- reading -----------------------------------------------------------------------------------------------------

    def _term(self, number: int) -> Term:
        if not 0 <= number < len(self.terms):
            raise NotFollowed(f"there is no term {number}")
        return self.terms[number]

    @property
    def comparisons(self) -> list[Truth]:
        """How the numbers that host code compared compare."""
        found = []
        for condition in self.origins.conditions:
            one = holds(condition, self.terms)
            if one is None:
                raise NotFollowed(f"a comparison that makes no sense: {condition.relation!r}")
            found.append(one if condition.held else ~one)
        return found

    def _conditions(self) -> list[Truth]:
        found = self.comparisons
        for origin in self.origins.launches:
            found += [equal(self._term(number), term(value)) for number, value in origin.constants]
        return found

    def _types(self) -> Iterator[Truth]:
        """What must hold for Triton to compile the kernels for these types of integers: it treats 1 as a constant."""
        for started in self.launches:
            for origin, arg in zip(started.args, started.step.args, strict=True):
                if origin is None or not isinstance(arg, Scalar) or type(arg.value) is not int or lost(origin):
                    continue
                if arg.value != 1:
                    yield ~equal(origin, 1)
                narrow = arg.dtype in ("i32", "")
                yield origin <= INT32 if narrow else origin > INT32

    def _launches(self) -> list[Started]:
        steps = self.program.every_launch
        if len(steps) != len(self.origins.launches):
            raise NotFollowed("not every launch was followed")
        found = []
        for step, origin in zip(steps, self.origins.launches, strict=True):
            if len(origin.grid) != 3 or len(origin.args) != len(step.args):
                raise NotFollowed("a launch was not followed")
            pairs = zip(origin.args, step.args, strict=True)
            args = tuple(self._term(n) if n >= 0 and isinstance(a, Scalar) else None for n, a in pairs)
            found.append(Started(step, tuple(map(self._term, origin.grid)), args))
        return found

    def _regions(self) -> dict[int, StorageRegion]:
        found = {}
        for view, shape in zip(self.program.inputs, self.setting.tensors, strict=True):
            if view.storage in found:
                raise NotFollowed("two arguments share memory")
            found[view.storage] = StorageRegion(
                view.storage, ITEMSIZE[view.dtype], shape.extent, shape.sizes, shape.strides, view.offset, True
            )
        for origin in self.origins.views:
            if origin.view.storage not in found and self.is_whole(origin.view):
                sizes, strides = tuple(map(self._term, origin.shape)), tuple(map(self._term, origin.stride))
                found[origin.view.storage] = StorageRegion(
                    origin.view.storage, ITEMSIZE[origin.view.dtype], extent(sizes, strides), sizes, strides, 0, False
                )
        for view in self._scalars():
            found.setdefault(view.storage, StorageRegion(view.storage, ITEMSIZE[view.dtype], ONE, (), (), 0, False))
        return found

    def _scalars(self) -> Iterator[View]:
        """Tensors without dimensions that have a storage of their own: one element, whatever the sizes are."""
        args = (arg for launch in self.program.every_launch for arg in launch.args)
        for view in (*self.program.results, *args):
            if isinstance(view, View) and not view.shape and self.is_whole(view):
                yield view

    def is_whole(self, view: View) -> bool:
        """Whether a view has every element of its storage."""
        size = self.program.allocated.get(view.storage, -1)
        return view.offset == 0 and view.numel == size // ITEMSIZE[view.dtype]

    def geometry(self, view: View) -> tuple[tuple[Term, ...], tuple[Term, ...]] | None:
        """The shape and the strides of a view; None where nobody knows."""
        origin = self.views.get(_key(view))
        return None if origin is None else self._geometry(origin)[:2]

    def _geometry(self, origin: ViewOrigin) -> tuple[tuple[Term, ...], tuple[Term, ...], Term]:
        return tuple(map(self._term, origin.shape)), tuple(map(self._term, origin.stride)), self._term(origin.offset)

    def offset(self, view: View) -> Term | None:
        """Where the view begins in its region, in its own elements; None where nobody knows."""
        region, origin = self.regions.get(view.storage), self.views.get(_key(view))
        if region is None or region.itemsize != ITEMSIZE[view.dtype]:
            return None
        if origin is None:
            return term(view.offset - region.start) if view.offset == region.start else None
        return self._term(origin.offset) - region.start

    # --- holding it against numbers

    def check(self, program: Program, values: Mapping[str, int]) -> None:
        """Raises NotFollowed unless the terms give the numbers of `program` for these values of the variables."""
        launches = program.every_launch
        if len(launches) != len(self.launches):
            raise NotFollowed(f"{len(launches)} launches, where {len(self.launches)} were expected")
        for started, launch in zip(self.launches, launches, strict=True):
            line = f"line {launch.source.line}: " if launch.source else ""
            if self.program.kernels[started.step.kernel].unaligned != program.kernels[launch.kernel].unaligned:
                raise NotFollowed(f"{line}a constant of the kernel is computed in a way that is not followed")
            if not self._are(started.grid, launch.grid, values):
                raise NotFollowed(f"{line}the grid is computed in a way that is not followed")
            given = [a.value if isinstance(a, Scalar) else None for a in launch.args]
            known = [(t, value) for t, value in zip(started.args, given, strict=False) if t is not None]
            if len(given) != len(started.args) or not self._are([t for t, _ in known], [v for _, v in known], values):
                raise NotFollowed(f"{line}an argument is computed in a way that is not followed")
        sizes = program.allocated
        for storage, region in self.regions.items():
            is_known = not region.is_input and storage in sizes
            if is_known and not self._are([region.count * region.itemsize], [sizes[storage]], values):
                raise NotFollowed("a tensor's shape is computed in a way that is not followed")

    def _are(self, terms: Sequence[Term], numbers: Sequence[object], values: Mapping[str, int]) -> bool:
        """Whether these are the terms' numbers; of those whose origin was lost, nobody knows."""
        known = [(t, number) for t, number in zip(terms, numbers, strict=True) if not lost(t)]
        try:
            return all(value_of(t, values) == number for t, number in known)
        except Undefined as error:
            raise NotFollowed(f"a number's origin was lost ({error})") from None

    def takes(self, values: Mapping[str, int]) -> bool:
        """Whether host code takes the same path for these values."""
        return Evaluation(values, unknown=False).holds(self.path)


def _fixed(origins: Origins, terms: Sequence[Term]) -> dict[Atom, Term]:
    """The sizes and strides that a kernel was compiled for: such as those that are 1."""
    constants = [one for origin in origins.launches for one in origin.constants if 0 <= one[0] < len(terms)]
    atoms_of = ((terms[number].atom, value) for number, value in constants)
    return {atom: term(value) for atom, value in atoms_of if atom is not None and atom.op == "var"}


def lost(*values: Term | Truth) -> bool:
    """Whether a number is in them whose origin nobody knows."""
    return any(atom.op == "var" and str(atom.args[0]).startswith(OPAQUE) for atom in atoms(*values).values())


def _terms(origins: Origins, setting: Setting) -> list[Term]:
    leaves: dict[Leaf, Term] = {("scalar", position): scalar for position, scalar in setting.scalars.items()}
    for number, shape in enumerate(setting.tensors):
        leaves |= {("size", number, axis): size for axis, size in enumerate(shape.sizes)}
        leaves |= {("stride", number, axis): stride for axis, stride in enumerate(shape.strides)}
    found = polynomials(origins.terms, leaves.get)
    if None in found:
        raise NotFollowed(f"malformed term {str(origins.terms[found.index(None)])[:60]}")
    return [one for one in found if one is not None]


def _key(view: View) -> tuple[int, tuple[int, ...], tuple[int, ...], int]:
    return view.storage, view.shape, view.stride, view.offset
