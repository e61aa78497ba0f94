"""The inspector: what the compiler makes of a program's kernels on a named card, without that card.

`inspect` answers with facts and sentences of every kernel in every configuration; `advice` with a few sentences, soon.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gradekit.inspector.compile import Compiled, CompileJob, compile_all
from gradekit.inspector.facts import Facts, KernelContext, facts
from gradekit.inspector.narrow_access import NarrowAccess, blames
from gradekit.inspector.sentences import Sentence, sentences
from gradekit.inspector.targets import Target, target
from gradekit.program import Choice, Kernel, Launch, Program, Step, run_steps

SCHEMA = "gradekit/inspection/1"

MOST_ADVISED = 3
"""Kernels that `advice` looks at, so that it answers in time."""

WEIGHTY = (
    "not-compiled",
    "does-not-fit",
    "no-tensor-cores",
    "spills",
    "narrow-load",
    "narrow-store",
    "few-programs",
    "float64",
)
"""The kinds of sentences that may stand in a report, in this order."""


@dataclass(frozen=True)
class Inspected:
    """One kernel in one configuration: its facts, what there is to say of it, and the text of every stage."""

    facts: Facts
    sentences: tuple[Sentence, ...]
    stages: dict[str, str]
    seconds: dict[str, float]
    blames: dict[tuple[int | None, str], tuple[NarrowAccess, ...]]


def inspect(program: Program, where: Target, *, kernel: str | None = None, ask_why: bool = True) -> list[Inspected]:
    """Every kernel that `program` launches, of each configuration, or those called
    `kernel`; in the order of their launches.

    `ask_why` compiles variants of kernels with narrow accesses, to name the argument that keeps them narrow.
    """
    launched = [item for item in _launched(program) if kernel in (None, item.kernel.name)]
    compiled = compile_all([CompileJob(item.kernel, where.arch, where.last) for item in launched])
    return [
        _inspected(item, result, where, program.path, ask_why) for item, result in zip(launched, compiled, strict=True)
    ]


def _inspected(item: _Launched, compiled: Compiled, where: Target, path: str, ask_why: bool) -> Inspected:
    subject = _subject(item, path)
    known = facts(subject, compiled, where)
    reasons = blames(item.kernel, item.launch, known, path) if ask_why else {}
    said = sentences(known, reasons)
    return Inspected(known, tuple(said), compiled.stages, compiled.seconds, reasons)


def _subject(item: _Launched, path: str) -> KernelContext:
    kernel, launch = item.kernel, item.launch
    return KernelContext(kernel.name, launch.kernel, item.label, kernel.options, launch.grid, kernel.ttir, path)


@dataclass(frozen=True)
class _Launched:
    """A kernel with its first launch, in the configuration `label` ("" where there is no choice)."""

    kernel: Kernel
    launch: Launch
    label: str


def _launched(program: Program) -> list[_Launched]:
    """Each kernel once."""
    found: dict[str, _Launched] = {}
    for label, launch in _launches(program.steps, ""):
        if launch.kernel in program.kernels:
            found.setdefault(launch.kernel, _Launched(program.kernels[launch.kernel], launch, label))
    return list(found.values())


def _launches(steps: Sequence[Step], label: str) -> Iterator[tuple[str, Launch]]:
    for step in steps:
        if isinstance(step, Launch):
            yield label, step
        elif isinstance(step, Choice):
            for name, option in zip(step.labels, step.options, strict=False):
                yield from _launches(option, name)


# --- advice -----------------------------------------------------------------------------------------------------------


def advice(program: Program, where: Target | str = "sm_90", *, most: int = 2) -> list[str]:
    """At most `most` sentences on what the machine code of `program` shows, for a report; [] where there is nothing.

    Takes 0.6 seconds for one kernel and 0.4 more where it asks why a load is narrow. Only the first few kernels are
    looked at, and of an autotuned one the first configuration.

    Raises:
        UnknownTarget: no such architecture. sandbox.Unavailable: the compiler's process could not be started.
    """
    where = target(where) if isinstance(where, str) else where
    items = _launched(dataclasses.replace(program, steps=tuple(run_steps(program.steps))))[:MOST_ADVISED]
    compiled = compile_all([CompileJob(item.kernel, where.arch, where.last) for item in items], seconds=10)
    known = [facts(_subject(item, program.path), done, where) for item, done in zip(items, compiled, strict=True)]
    said = [s for item, fact in zip(items, known, strict=True) for s in _advised(item, fact, program)]
    weighty = sorted((s for s in said if s.kind in WEIGHTY), key=lambda s: WEIGHTY.index(s.kind))
    return list(dict.fromkeys(sentence.text for sentence in weighty))[:most]


def _advised(item: _Launched, known: Facts, program: Program) -> list[Sentence]:
    """Why a load is narrow is asked only where nothing heavier is to be said."""
    heavier = any(sentence.kind in WEIGHTY[:4] for sentence in sentences(known))
    return sentences(known, {} if heavier else blames(item.kernel, item.launch, known, program.path))


# --- the record -------------------------------------------------------------------------------------------------------


def to_dict(found: Inspected) -> dict[str, Any]:
    """An inspected kernel as data that `json.dumps` accepts; without the stages' texts."""
    data = dataclasses.asdict(found.facts)
    data["target"] = found.facts.target.name
    data["atomics"] = {str(line): ops for line, ops in found.facts.atomics.items()}
    data["sentences"] = [dataclasses.asdict(sentence) for sentence in found.sentences]
    data["seconds"] = found.seconds
    return data
