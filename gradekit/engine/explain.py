"""Incidents, as the checked memory saw them, into findings in the student's words.

An incident knows storages and positions; the student knows tensors and indices. Incidents of one kind at one line are
one finding.
"""

import functools
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from gradekit.engine.host import written
from gradekit.engine.memory import Memory, everywhere, first_true, index_in, index_of
from gradekit.engine.observer import coordinates
from gradekit.engine.promises import kernel_arguments
from gradekit.findings import Cause, Finding
from gradekit.observations import ON_THE_HOST, SHOWN, Incident
from gradekit.program import ITEMSIZE, Descriptor, Program, View


class Namer:
    """What storages and their elements are called."""

    def __init__(self, program: Program, names: Sequence[str]) -> None:
        self._program = program
        self.views: dict[int, View] = {}
        self.names: dict[int, str] = {}
        results: dict[int, View] = {}
        for result in program.results:
            if isinstance(result, View):
                results.setdefault(result.storage, result)
        for position, view in enumerate(results.values()):
            self.views[view.storage] = view
            self.names[view.storage] = "the result" if len(results) == 1 else self._result(position, view.storage)
        for position, view in enumerate(program.inputs):
            self.views[view.storage] = view
            self.names[view.storage] = names[position] if position < len(names) else f"input {position}"

    @functools.cached_property
    def parameters(self) -> dict[int, str]:
        """For each storage, the parameter by which the first kernel that takes it knows it."""
        found: dict[int, str] = {}
        for launch in self._program.launches():
            arguments = kernel_arguments(self._program.kernels[launch.kernel].ttir)
            for (name, _), argument in zip(arguments, launch.args, strict=False):  # a descriptor stands for several
                if isinstance(argument, Descriptor):
                    break
                if isinstance(argument, View):
                    found.setdefault(argument.storage, f"`{name}`")
        return found

    def storage(self, id: int) -> str:
        """What the student calls the tensor in storage `id`: of one that is neither input nor result, the parameter of
        the first kernel that takes it, or "buffer 3" where there is none."""
        return self.names.get(id) or self.parameters.get(id, f"buffer {id}")

    def _result(self, position: int, id: int) -> str:
        """ "result 1 (`dw_ptr`)": of several results, the number alone says little."""
        return f"result {position} ({self.parameters[id]})" if id in self.parameters else f"result {position}"

    def element(self, storage: int, position: int, itemsize: int) -> tuple[int, ...]:
        """The index in the student's tensor of an element of the storage; its position where it is outside."""
        view = self.views.get(storage)
        if view is None or ITEMSIZE[view.dtype] != itemsize:
            return (position,)
        index, inside = index_in(view, torch.tensor([position]))
        return tuple(map(int, index)) if bool(inside) else (position - view.offset,)


def explain(incidents: Sequence[Incident], namer: Namer, grids: Sequence[tuple[int, int, int]]) -> list[Finding]:
    """One finding for each kind, line, kernel and tensor, in the order in which they were first seen."""
    groups: dict[tuple[object, ...], list[Incident]] = {}
    for incident in incidents:
        site = incident.site
        key = (incident.cause, site.line, site.kernel, site.caller, incident.storage, incident.message)
        groups.setdefault(key, []).append(incident)
    return [_finding(group, namer, grids) for group in groups.values()]


def _finding(group: list[Incident], namer: Namer, grids: Sequence[tuple[int, int, int]]) -> Finding:
    first, id = group[0], group[0].storage
    elements = [(element, incident.itemsize) for incident in group for element in incident.elements][:SHOWN]
    programs = [(program, incident.site.launch) for incident in group for program in incident.programs][:SHOWN]
    finding = Finding(
        first.cause, "", first.site.line, first.site.kernel, max(first.site.launch, 0),
        tensor="" if id is None else namer.storage(id),
        elements=() if id is None else tuple(namer.element(id, *element) for element in elements),
        programs=tuple(
            (0, 0, 0) if launch == ON_THE_HOST else coordinates(program, grids[launch]) for program, launch in programs
        ),
        count=sum(incident.count for incident in group),
        facts={} if id is None else {"elements_in_storage": first.capacity, "caller": first.site.caller},
    )  # fmt: skip
    return replace(finding, message=sentence(finding, first.message))


_SAID = tomllib.loads(Path(__file__).with_name("incidents.toml").read_text(encoding="utf-8"))

_OF_PROGRAMS = (Cause.DEVICE_ASSERT, Cause.BROKEN_PROMISE)
"""Causes of incidents that concern whole programs and no memory."""


def sentence(finding: Finding, message: str = "") -> str:
    """What the finding says, without the line."""
    noun = "program" if finding.cause in _OF_PROGRAMS else "element"
    count = f"{finding.count} {noun}{'s' if finding.count != 1 else ''}"
    element = list(finding.elements[0]) if finding.elements else ""
    program = finding.programs[0] if finding.programs else ""
    own = {Cause.RACE: "race-in-part", Cause.MISSING_BARRIER: "missing-barrier-between-programs"} if message else {}
    text: str = _SAID[own.get(finding.cause, finding.cause)]["says"]
    return text.format(
        count=count, tensor=finding.tensor or "any tensor", element=element, program=program,
        message=repr(message) if finding.cause is Cause.DEVICE_ASSERT else message,
    )  # fmt: skip


def unwritten(program: Program, memory: Memory, namer: Namer) -> list[Finding]:
    """The elements of the results that no step wrote."""
    findings = []
    for result in program.results:
        if not isinstance(result, View) or not result.numel:
            continue
        seen = written(memory.storages[result.storage], result)
        if seen is None or everywhere(seen):
            continue
        missing = result.numel - int(seen.count_nonzero())
        name = namer.storage(result.storage)
        elements = tuple(index_of(number, result.shape) for number in first_true(~seen, SHOWN).tolist())
        message = f"{missing} of {result.numel} elements of {name} are never written, first {list(elements[0])}"
        findings.append(
            Finding(Cause.UNWRITTEN_OUTPUT, message, tensor=name, elements=elements, count=missing,
                    facts={"elements": result.numel})
        )  # fmt: skip
    return findings
