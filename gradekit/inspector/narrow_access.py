"""Why a load or store is narrow: the kernel is compiled again as if more were known of its arguments.

Nothing is guessed. An argument is named where knowing it makes the access wider and not knowing it keeps it narrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gradekit.engine.promises import kernel_arguments
from gradekit.engine.ttir import Function, TTIRError, Type, parse
from gradekit.inspector import Limit
from gradekit.inspector.compile import Compiled, CompileJob, compile_all
from gradekit.inspector.facts import AccessUse, Facts
from gradekit.inspector.instructions import instructions
from gradekit.inspector.targets import Target
from gradekit.program import ALIGNMENT, FUNCTION, Kernel, Launch, Scalar


@dataclass(frozen=True)
class NarrowAccess:
    """An argument that keeps an access narrow.

    `kind` is "multiple" (of 16: an integer), "address" (the same of a pointer) or "apart" (neighbouring elements lie so
    many elements apart). `value` is what the launch passed, None where unknown; `width` bytes would be moved otherwise.
    """

    argument: str
    kind: str
    value: int | None
    width: int


def blames(
    kernel: Kernel, launch: Launch, facts: Facts, path: str
) -> dict[tuple[int | None, str], tuple[NarrowAccess, ...]]:
    """For each narrow access of `facts`, by (line, kind), the arguments that keep it so;
    without those that are unclear."""
    try:
        function = parse(kernel.ttir).entry
    except TTIRError:
        return {}
    trial = _Attempt(kernel, function, _values(launch, function), facts.target, path)
    narrow = [use for use in facts.accesses if use.is_narrow and not use.access.by_descriptor]
    found = {(use.access.line, use.access.kind): blame for use, blame in zip(narrow, trial.all(narrow), strict=True)}
    return {place: blame for place, blame in found.items() if blame}


def _values(launch: Launch, function: Function) -> dict[str, int]:
    """The integers that the launch passed, by the SSA names of the arguments; none where descriptors stand between."""
    if len(launch.args) != len(function.arguments):
        return {}
    pairs = zip(function.arguments, launch.args, strict=True)
    return {name: arg.value for name, arg in pairs if isinstance(arg, Scalar) and type(arg.value) is int}


class _Attempt:
    """Compilations of one kernel's variants."""

    def __init__(self, kernel: Kernel, function: Function, values: dict[str, int], where: Target, path: str) -> None:
        self._kernel = kernel
        self._values = values
        self._where = where
        self._path = path
        self._unknown = unknown_arguments(kernel.ttir, function)
        self._integers = {
            n
            for n, kind in zip(function.arguments, function.argument_types, strict=True)
            if kind.element in ("i32", "i64") and not kind.shape
        }
        self._shown = dict(zip(function.arguments, function.argument_names, strict=True))

    def all(self, narrow: Sequence[AccessUse]) -> list[tuple[NarrowAccess, ...]]:
        """The blame of each access: first of all what is not known to be a multiple of 16, then what lies apart."""
        aligned = self._by_alignment(narrow)
        spread = self._by_spread([use for use, blame in zip(narrow, aligned, strict=True) if not blame])
        left = iter(spread)
        return [blame or next(left) for blame in aligned]

    def _by_alignment(self, narrow: Sequence[AccessUse]) -> list[tuple[NarrowAccess, ...]]:
        """Compile with all suspects known, then once for each suspect with all but that one known."""
        suspects = [self._suspects(use) for use in narrow]
        everyone = sorted(set().union(*suspects)) if suspects else []
        if not everyone or len(everyone) > Limit.SUSPECTS:
            return [()] * len(narrow)
        texts = [with_divisible(self._kernel.ttir, everyone)]
        texts += [with_divisible(self._kernel.ttir, [n for n in everyone if n != name]) for name in everyone]
        known, *but_one = self._compiled(texts)
        without = dict(zip(everyone, but_one, strict=True))
        return [self._alignment(use, mine, known, without) for use, mine in zip(narrow, suspects, strict=True)]

    def _suspects(self, use: AccessUse) -> set[str]:
        return {name for name in (*use.access.pointer, *use.access.mask) if name in self._unknown}

    def _alignment(
        self, use: AccessUse, suspects: set[str], known: Compiled, without: dict[str, Compiled]
    ) -> tuple[NarrowAccess, ...]:
        width = self._width(known, use)
        if width <= (use.width or 0):
            return ()
        guilty = [name for name in self._shown if name in suspects and self._width(without[name], use) < width]
        kinds = {name: "address" if self._unknown[name].element == "ptr" else "multiple" for name in guilty}
        return tuple(NarrowAccess(self._shown[n], kinds[n], self._values.get(n), width) for n in guilty)

    def _by_spread(self, narrow: Sequence[AccessUse]) -> list[tuple[NarrowAccess, ...]]:
        """As if one integer that the addresses depend on were 1, and all the rest known."""
        suspects = [
            [n for n in use.access.pointer if self._values.get(n, 1) > 1 and n in self._integers] for use in narrow
        ]
        everyone = sorted(set().union(*suspects)) if suspects else []
        if not everyone or len(everyone) > Limit.SUSPECTS:
            return [()] * len(narrow)
        rest = {name: [n for n in self._unknown if n != name] for name in everyone}
        texts = [with_one(with_divisible(self._kernel.ttir, rest[name]), name) for name in everyone]
        tried = dict(zip(everyone, self._compiled(texts), strict=True))
        return [tuple(self._spread(use, mine, tried)) for use, mine in zip(narrow, suspects, strict=True)]

    def _spread(self, use: AccessUse, suspects: Sequence[str], tried: dict[str, Compiled]) -> Iterable[NarrowAccess]:
        wider = [name for name in suspects if self._width(tried[name], use) > (use.width or 0)]
        if len(wider) == 1:
            yield NarrowAccess(
                self._shown[wider[0]], "apart", self._values[wider[0]], self._width(tried[wider[0]], use)
            )

    def _compiled(self, texts: Sequence[str]) -> list[Compiled]:
        where = self._where
        jobs = [CompileJob(replace(self._kernel, ttir=text), where.arch, where.assembly) for text in texts]
        return compile_all(jobs)

    def _width(self, compiled: Compiled, use: AccessUse) -> int:
        code = instructions(self._where.assembly, compiled.stages.get(self._where.assembly, ""), self._path)
        here = (i.width for i in code if (i.line, i.kind) == (use.access.line, use.access.kind))
        return max(here, default=0)


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
