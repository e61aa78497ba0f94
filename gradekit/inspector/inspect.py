"""The inspector: what the compiler makes of a program's kernels on a named card, without that card.

`inspect` answers with facts and sentences of every kernel in every configuration.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gradekit.inspector.compile import Compiled, CompileJob, compile_all
from gradekit.inspector.facts import Facts, Launched, facts
from gradekit.inspector.narrow_access import NarrowAccess, blames
from gradekit.inspector.sentences import Sentence, sentences
from gradekit.inspector.targets import Target
from gradekit.program import Choice, Launch, Program, Step

SCHEMA = "gradekit/inspection/1"


@dataclass(frozen=True)
class Inspected:
    """One kernel in one configuration: its facts, what there is to say of it, and the text of every stage."""

    facts: Facts
    sentences: tuple[Sentence, ...]
    stages: dict[str, str]
    blames: dict[tuple[int | None, str], tuple[NarrowAccess, ...]]


def inspect(program: Program, where: Target, *, kernel: str | None = None, ask_why: bool = True) -> list[Inspected]:
    """Every kernel that `program` launches, of each configuration, or those called
    `kernel`; in the order of their launches.

    `ask_why` compiles variants of kernels with narrow accesses, to name the argument that keeps them narrow.
    """
    launched = [item for item in _launched(program) if kernel in (None, item.kernel.name)]
    compiled = compile_all([CompileJob(item.kernel, where.arch, where.last) for item in launched])
    return [_inspected(item, result, where, ask_why) for item, result in zip(launched, compiled, strict=True)]


def _inspected(item: Launched, compiled: Compiled, where: Target, ask_why: bool) -> Inspected:
    known = facts(item, compiled, where)
    reasons = blames(item.kernel, item.launch, known, item.path) if ask_why else {}
    return Inspected(known, tuple(sentences(known, reasons)), compiled.stages, reasons)


def _launched(program: Program) -> list[Launched]:
    """Each kernel once."""
    found: dict[str, Launched] = {}
    for label, launch in _launches(program.steps, ""):
        if launch.kernel in program.kernels:
            found.setdefault(launch.kernel, Launched(program.kernels[launch.kernel], launch, label, program.path))
    return list(found.values())


def _launches(steps: Sequence[Step], label: str) -> Iterator[tuple[str, Launch]]:
    for step in steps:
        if isinstance(step, Launch):
            yield label, step
        elif isinstance(step, Choice):
            for name, option in zip(step.labels, step.options, strict=False):
                yield from _launches(option, name)


# --- the record -------------------------------------------------------------------------------------------------------


def to_dict(found: Inspected) -> dict[str, Any]:
    """An inspected kernel as data that `json.dumps` accepts; without the stages' texts."""
    data = dataclasses.asdict(found.facts)
    data["target"] = found.facts.target.name
    data["sentences"] = [dataclasses.asdict(sentence) for sentence in found.sentences]
    return data
