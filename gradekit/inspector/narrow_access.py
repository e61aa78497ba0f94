"""Why a load or store is narrow: the kernel is compiled again as if more were known of its arguments.

Nothing is guessed. An argument is named where knowing it makes the access wider and not knowing it keeps it narrow.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from gradekit.engine.promises import kernel_arguments
from gradekit.engine.ttir import Function, TTIRError, Type, parse
from gradekit.inspector import Limit
from gradekit.inspector.compile import CompileJob, compile_all
from gradekit.inspector.facts import AccessUse, Facts, Launched, NarrowAccess, Place
from gradekit.inspector.instructions import instructions
from gradekit.inspector.targets import Target
from gradekit.program import ALIGNMENT, FUNCTION, Launch, Scalar


def explained(subject: Launched, facts: Facts) -> Facts:
    """The facts, in which narrow accesses have the arguments that keep them so; not where that is unclear."""
    try:
        function = parse(subject.kernel.ttir).entry
    except TTIRError:
        return facts
    narrow = [use for use in facts.accesses if use.is_narrow and not use.access.by_descriptor]
    trial = _Attempt(subject, function, facts.target)
    found = dict(trial.unaligned(narrow))
    found |= dict(trial.apart([use for use in narrow if use.place not in found]))
    return replace(facts, accesses=tuple(replace(use, kept_by=found.get(use.place, ())) for use in facts.accesses))


def _values(launch: Launch, function: Function) -> dict[str, int]:
    """The integers that the launch passed, by the SSA names of the arguments; none where descriptors stand between."""
    if len(launch.args) != len(function.arguments):
        return {}
    pairs = zip(function.arguments, launch.args, strict=True)
    return {name: arg.value for name, arg in pairs if isinstance(arg, Scalar) and type(arg.value) is int}


class _Attempt:
    """Compilations of one kernel's variants, which go by the argument of which they assume less, or more, than all."""

    def __init__(self, subject: Launched, function: Function, where: Target) -> None:
        self._kernel, self._path, self._where = subject.kernel, subject.path, where
        self._values = _values(subject.launch, function)
        self._unknown = unknown_arguments(self._kernel.ttir, function)
        self._types = dict(zip(function.arguments, function.argument_types, strict=True))
        self._shown = dict(zip(function.arguments, function.argument_names, strict=True))

    def unaligned(self, narrow: Sequence[AccessUse]) -> Iterator[tuple[Place, tuple[NarrowAccess, ...]]]:
        """The arguments of an access to be multiples of 16: it is wide if all are, narrow if this one is not."""
        suspects = [{*use.access.pointer, *use.access.mask} & self._unknown.keys() for use in narrow]
        everyone = sorted(set().union(*suspects))
        widths = self._widths(everyone and ["", *everyone], lambda name: self._known(set(everyone) - {name}))
        for use, mine in zip(narrow, suspects, strict=True):
            width = widths[""][use.place]
            guilty = [name for name in self._shown if name in mine and widths[name][use.place] < width]
            kinds = ["address" if self._types[name].element == "ptr" else "multiple" for name in guilty]
            if guilty and width > (use.width or 0):
                yield use.place, tuple(map(self._blamed, guilty, kinds, [width] * len(guilty)))

    def apart(self, narrow: Sequence[AccessUse]) -> Iterator[tuple[Place, tuple[NarrowAccess, ...]]]:
        """The one integer in an access's address that, if it were 1 and others multiples of 16, would make it wider."""
        suspects = [[name for name in use.access.pointer if self._is_step(name)] for use in narrow]
        everyone = sorted(set().union(*suspects))
        widths = self._widths(everyone, lambda name: with_one(self._known(self._unknown.keys() - {name}), name))
        for use, mine in zip(narrow, suspects, strict=True):
            wider = [name for name in mine if widths[name][use.place] > (use.width or 0)]
            if len(wider) == 1:
                yield use.place, (self._blamed(wider[0], "apart", widths[wider[0]][use.place]),)

    def _is_step(self, name: str) -> bool:
        kind = self._types[name]
        return kind.element in ("i32", "i64") and not kind.shape and self._values.get(name, 1) > 1

    def _blamed(self, name: str, kind: str, width: int) -> NarrowAccess:
        return NarrowAccess(self._shown[name], kind, self._values.get(name), width)

    def _known(self, names: Iterable[str]) -> str:
        return with_divisible(self._kernel.ttir, names)

    def _widths(self, names: Sequence[str], text: Callable[[str], str]) -> dict[str, dict[Place, int]]:
        """How wide accesses are in each variant; nowhere wide, where more arguments are suspect than can be tried."""
        found: dict[str, dict[Place, int]] = defaultdict(lambda: defaultdict(int))
        if len(names) > Limit.VARIANTS:
            return found
        stage = self._where.assembly
        jobs = [CompileJob(replace(self._kernel, ttir=text(name)), self._where.arch, stage) for name in names]
        for name, compiled in zip(names, compile_all(jobs), strict=True):
            for one in instructions(stage, compiled.stages.get(stage, ""), self._path):
                place = one.line, one.kind
                found[name][place] = max(found[name][place], one.width)
        return found


# --- what is known of the arguments -----------------------------------------------------------------------------------


def unknown_arguments(text: str, function: Function) -> dict[str, Type]:
    """The integers and pointers among the arguments that are not known to be multiples of 16, by their SSA names."""
    aligned = dict(kernel_arguments(text))
    typed = zip(function.arguments, function.argument_types, strict=True)
    return {
        name: kind
        for name, kind in typed
        if kind.element in ("i32", "i64", "ptr") and not kind.shape and not aligned.get(name)
    }


def with_divisible(text: str, names: Iterable[str]) -> str:
    """The kernel as if the arguments `names` were known to be multiples of 16."""

    def known(header: re.Match[str]) -> str:
        changed = header[0]
        for name in names:
            changed = _argument(name).sub(rf"\1{ALIGNMENT}\3", changed, count=1)
        return changed

    return FUNCTION.sub(known, text, count=1)


def with_one(text: str, name: str) -> str:
    """The kernel as if the integer argument `name` were the constant 1."""
    header = FUNCTION.search(text)
    found = _argument(name).search(header[0]) if header else None
    if header is None or found is None:
        return text
    kind = found[1].rpartition(": ")[2].strip()
    renamed = header[0].replace(f"%{name}:", f"%{name}_as_given:", 1)
    return text.replace(header[0], f"{renamed}\n    %{name} = arith.constant 1 : {kind} loc(unknown)", 1)


def _argument(name: str) -> re.Pattern[str]:
    return re.compile(rf"(%{re.escape(name)}: [^,{{}}()]*?)( \{{[^{{}}]*\}})?( loc\(|, |\))")
