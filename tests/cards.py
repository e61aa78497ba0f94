"""A card and a worker for tests on machines that have none: programs run on the
engine, and time is what a test says."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradekit.confine import Means
from gradekit.engine import executor
from gradekit.gpu.faults import CardFault
from gradekit.gpu.inputs import make_set
from gradekit.gpu.timing import Turn
from gradekit.judge.speed import Ceilings, Round
from gradekit.program import Program
from gradekit.subject.device import Device

CEILINGS = Ceilings(4e12, {"float32": 5e13, "float16": 8e14})


@dataclass(frozen=True)
class FakeCard:
    """What of a Card anybody asks for here; its tensors lie in ordinary memory."""

    name: str = "Test Card"
    uuid: str = "GPU-0"
    index: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))


@dataclass
class FakeRun:
    results: list[Any]
    findings: list[Any] = field(default_factory=list)
    seconds: float = 0.1
    prints: tuple[str, ...] = ()


@dataclass
class FakePrepared:
    id: int = 0
    option_label: str = ""
    chosen: tuple[int, ...] = ()
    choices: dict[str, float] = field(default_factory=dict)
    launches: int = 1
    peak_bytes: int = 4096
    sets: int = 2
    how: str = "graph"
    why: str = ""
    seconds: float = 0.0


@dataclass
class FakeWorker:
    """Answers as a Worker does. `offset` is added to every result, `fault` is raised in place of one; a turn of the
    student takes `seconds`. `faults` are those of single options; `asked` has the options
    that were run; `means` isolate it."""

    offset: float = 0.0
    fault: CardFault | None = None
    faults: dict[int, CardFault] = field(default_factory=dict)
    seconds: float = 1e-4
    prepared: FakePrepared = field(default_factory=FakePrepared)
    asked: list[Any] = field(default_factory=list)
    turns: int = 0
    closed: bool = False
    forgotten: list[int] = field(default_factory=list)
    findings: list[Any] = field(default_factory=list)
    means: Means = field(default_factory=lambda: Means(seccomp=True, user=True, landlock=7))

    def run(
        self, program: Program, inputs: Sequence[torch.Tensor], *, option: int = 0, allow: Sequence[str] = (), **_: Any
    ) -> FakeRun:
        self.asked.append(option)
        if option in self.faults:
            raise self.faults[option]
        return FakeRun(self._results(program, inputs, option, allow), self.findings)

    def prepare(self, program: Program, specs: Sequence[Any], *, allow: Sequence[str] = (), **_: Any) -> FakePrepared:
        if self.fault:
            raise self.fault
        self._timed = (program, specs, allow)
        return self.prepared

    def turn(self, id: int, *, milliseconds: float) -> Turn:
        self.turns += 1
        return Turn((self.seconds,) * 3)

    def results(self, id: int, device: torch.device) -> list[list[Any]]:
        program, specs, allow = self._timed
        return [
            self._results(program, [t for t in made if isinstance(t, torch.Tensor)], 0, allow)
            for made in (make_set(specs, number, "cpu") for number in range(self.prepared.sets))
        ]

    def start(self) -> None:
        pass

    def forget(self, id: int) -> None:
        self.forgotten.append(id)

    def close(self) -> None:
        self.closed = True

    def _results(
        self, program: Program, inputs: Sequence[torch.Tensor], option: int, allow: Sequence[str]
    ) -> list[Any]:
        if self.fault:
            raise self.fault
        run = executor.run(program, inputs, option=option, allow=allow)
        return [result + self.offset if isinstance(result, torch.Tensor) else result for result in run.results]


def device(worker: FakeWorker) -> Device:
    """A device with a card whose worker is `worker`."""
    made = Device("cuda", start=lambda card: worker)  # type: ignore[arg-type,return-value]
    made.__dict__["card"] = FakeCard()
    return made


def rounds(student: float, *, eager: float, compiled: float, noise: float = 0.0, count: int = 12) -> tuple[Round, ...]:
    """Rounds in which the sides took these seconds; in every other lap the student takes `noise` (relative) more."""
    return tuple(
        Round(
            {"student": (student * (1 + noise * (i // 2 % 2)),), "eager": (eager,), "compiled": (compiled,)},
            {side: 1800 + i for side in ("student", "eager", "compiled")},
        )
        for i in range(count)
    )
