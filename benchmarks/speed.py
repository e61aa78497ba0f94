"""How repeatable the graded ratio is, on a card: whole regrades, beside what do_bench says of the same kernels.

    python benchmarks/speed.py [--processes 4] [--regrades 5] [--more NAME=80 ...] [--only NAME ...] [--record FILE]

A regrade makes inputs, prepares the submission in the worker, captures the baseline's graph, lets them take turns and
judges: all that `gradekit check` does for one speed point against eager torch. Each of `--processes` is a new
grader with a new worker, and makes `--regrades` of them for every kernel (`--more` adds some for one kernel).
The first process is there to say what the ratio is: in the others, every regrade is also judged against a
threshold 2 % below that ratio, which must not fail, and one 2 % above, which must not pass; one that stays too
close to call passes, as in a grade.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from gradekit.gpu import Limit, baselines, card
from gradekit.gpu.card import Card
from gradekit.gpu.contest import interleave
from gradekit.gpu.inputs import make_set
from gradekit.gpu.worker import Prepared, Worker
from gradekit.inputs.spec import Input, normal
from gradekit.judge.speed import Round, Verdict, decide, ratio, seconds, settled
from gradekit.program import Program

HERE = Path(__file__).parent
MARGIN = 0.02
DIGITS = 5
DO_BENCH = 3
"""So often does each process ask do_bench."""


@dataclass(frozen=True)
class Case:
    """A kernel of kernels.py on inputs of these specs, and what torch does for the same."""

    entry: str
    specs: tuple[Input, ...]
    plain: Callable[..., torch.Tensor]


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


CASES = {
    "add 1M": Case("add", (normal((1 << 20,)), normal((1 << 20,))), torch.add),
    "softmax 4096 x 1000": Case("softmax", (normal((4096, 1000)),), softmax),
    "softmax 8192 x 4096": Case("softmax", (normal((8192, 4096)),), softmax),
    "matmul 2048": Case("matmul", (normal((2048, 2048), "float16"), normal((2048, 2048), "float16")), torch.matmul),
    "softmax 32768 x 8192": Case("softmax", (normal((32768, 8192)),), softmax),
    "matmul 8192": Case("matmul", (normal((8192, 8192), "float16"), normal((8192, 8192), "float16")), torch.matmul),
}
"""From 5 us to 5 ms."""


# --- one grader's process --------------------------------------------------------------------------------------------


@dataclass
class Grader:
    """A card, the worker on it, and the programs of all cases; `thresholds` are to be judged, by case."""

    card: Card
    worker: Worker
    programs: dict[str, Program]
    thresholds: dict[str, list[float]]
    checked: set[str] = field(default_factory=set)

    def regrade(self, name: str) -> dict[str, Any]:
        """One whole regrade, as data for the record."""
        started, case = time.perf_counter(), CASES[name]
        prepared = self.worker.prepare(self.programs[name], case.specs)
        sets = [make_set(case.specs, number, self.card.device) for number in range(prepared.sets)]
        eager = baselines.eager(case.plain, sets, self.card)
        asked = self.thresholds.get(name, [])
        timings = self._interleaved(prepared, eager, asked)
        if name not in self.checked:
            _check(case, sets[-1], [*self.worker.results(prepared.id)][-1])
            self.checked.add(name)
        self.worker.forget(prepared.id)
        eager.clock.close()
        return _record(timings, prepared, asked) | {"seconds": time.perf_counter() - started}

    def _interleaved(self, prepared: Prepared, eager: baselines.Baseline, asked: Sequence[float]) -> tuple[Round, ...]:
        student = functools.partial(self.worker.turn, prepared.id, milliseconds=Limit.TURN_MS)
        sides = {"student": student, "eager": functools.partial(eager.clock.turn, Limit.TURN_MS)}
        return interleave(sides, settled({"eager": asked}))


def _check(case: Case, inputs: Sequence[Any], found: Sequence[Any]) -> None:
    torch.testing.assert_close(found[0].to("cuda"), case.plain(*inputs), atol=1e-2, rtol=1e-2)


def _record(rounds: Sequence[Round], prepared: Prepared, asked: Sequence[float]) -> dict[str, Any]:
    found = ratio(rounds, "eager")
    return {
        "ratio": [found.value, found.low, found.high],
        "student": seconds(rounds, "student"),
        "eager": seconds(rounds, "eager"),
        "rounds": [_samples(r) for r in rounds],
        "discarded": found.discarded,
        "settled": settled({"eager": asked})(rounds),
        "sets": prepared.sets,
        "how": prepared.how,
        "verdicts": [str(decide(found, threshold).value) for threshold in asked],
    }


def _samples(taken: Round) -> dict[str, Any]:
    samples = {side: [float(f"{s:.{DIGITS}g}") for s in several] for side, several in taken.seconds.items()}
    return {"seconds": samples, "sm_mhz": dict(taken.sm_mhz), "throttled": list(taken.throttled)}


def by_do_bench(case: Case) -> float:
    """The ratio as it is usually measured: each side by itself, in one process, medians by Triton's own tool."""
    import kernels
    from triton.testing import do_bench

    inputs = make_set(case.specs, 0, "cuda")
    ours = functools.partial(getattr(kernels, case.entry), *inputs)
    return do_bench(functools.partial(case.plain, *inputs), return_mode="median") / do_bench(ours, return_mode="median")


def process(names: Sequence[str], counts: dict[str, int], thresholds: dict[str, list[float]]) -> dict[str, Any]:
    """All regrades of one grader's process, with a worker of its own."""
    found = card.find("cuda")
    assert found is not None
    with Worker(found) as worker:
        worker.start()
        grader = Grader(found, worker, programs(names), thresholds)
        graded = {name: [grader.regrade(name) for _ in range(counts[name])] for name in names}
    usual = {name: [by_do_bench(CASES[name]) for _ in range(min(counts[name], DO_BENCH))] for name in names}
    return {"regrades": graded, "do_bench": usual, "versions": versions(found)}


def programs(names: Sequence[str]) -> dict[str, Program]:
    """What the cases' calls become, traced as a submission is."""
    from gradekit.sandbox import Tracer
    from gradekit.submission import read

    with Tracer(read(HERE / "kernels.py", entry="softmax")) as tracer:
        cases = {name: CASES[name] for name in names}
        return {name: tracer.trace(c.entry, [s.view(k) for k, s in enumerate(c.specs)]) for name, c in cases.items()}


def versions(found: Card) -> dict[str, Any]:
    """What the figures depend on."""
    import triton

    return {
        "card": found.name, "uuid": found.uuid, "driver": card.driver(), "torch": torch.__version__,
        "triton": triton.__version__, "cuda": torch.version.cuda, "python": sys.version.split()[0],
    }  # fmt: skip


# --- all processes ---------------------------------------------------------------------------------------------------


def launched(names: Sequence[str], counts: dict[str, int], thresholds: dict[str, list[float]]) -> dict[str, Any]:
    """`process`, in a process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        asked = json.dumps([list(names), counts, thresholds, str(out)])
        subprocess.run([sys.executable, __file__, "--process", asked], check=True)
        answer: dict[str, Any] = json.loads(out.read_text())
        return answer


def around(regrades: Sequence[dict[str, Any]]) -> list[float]:
    """Thresholds that a submission misses by 2 %, and exceeds by 2 %."""
    usual = statistics.median(r["ratio"][0] for r in regrades)
    return [usual / (1 - MARGIN), usual / (1 + MARGIN)]


def cv(values: Sequence[float]) -> float:
    """The coefficient of variation in percent."""
    return 100 * statistics.stdev(values) / statistics.fmean(values) if len(values) > 1 else float("nan")


def between(found: Sequence[dict[str, Any]], name: str) -> float:
    """The coefficient of variation in percent of the processes' means."""
    return cv([statistics.fmean(r["ratio"][0] for r in p["regrades"][name]) for p in found])


def row(found: Sequence[dict[str, Any]], name: str) -> str:
    """The line of the table for one kernel."""
    regrades = [r for p in found for r in p["regrades"][name]]
    ours, usual = [r["ratio"][0] for r in regrades], [v for p in found for v in p["do_bench"][name]]
    student, eager, wall = (statistics.median(r[key] for r in regrades) for key in ("student", "eager", "seconds"))
    rounds = statistics.median(len(r["rounds"]) for r in regrades)
    return (
        f"| {name} | {student * 1e6:.2f} | {eager * 1e6:.2f} | {statistics.fmean(ours):.4f} | {cv(ours):.2f} | "
        f"{between(found, name):.2f} | {statistics.fmean(usual):.3f} | {cv(usual):.2f} | {len(ours)} | {rounds:.0f} | "
        f"{wall:.2f} |"
    )


HEAD = (
    "| kernel | student us | eager us | ratio | cv % | between processes % | do_bench's | its cv % | regrades | "
    "rounds | s each |"
)


def table(found: Sequence[dict[str, Any]]) -> str:
    """Markdown: a line for each kernel, then how the verdicts fell."""
    lines = [HEAD, "|---" * (HEAD.count("|") - 1) + "|", *(row(found, name) for name in found[0]["regrades"])]
    judged = [r["verdicts"] for p in found for regrades in p["regrades"].values() for r in regrades if r["verdicts"]]
    for place, words, wrong in ((0, "2 % below its threshold", "pass"), (1, "2 % above its threshold", "fail")):
        verdicts = Counter(v[place] for v in judged)
        flips = verdicts[wrong] + (verdicts[str(Verdict.TOO_CLOSE.value)] if wrong == "pass" else 0)
        lines.append(f"{words}: {dict(verdicts)} in {len(judged)} regrades, {flips} flipped")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--regrades", type=int, default=5)
    parser.add_argument("--more", action="append", default=[], metavar="NAME=COUNT")
    parser.add_argument("--only", action="append", choices=[*CASES])
    parser.add_argument("--record", type=Path)
    parser.add_argument("--process", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    given = arguments()
    if given.process:
        names, counts, thresholds, out = json.loads(given.process)
        Path(out).write_text(json.dumps(process(names, counts, thresholds)))
        return
    names = given.only or [*CASES]
    counts = dict.fromkeys(names, given.regrades)
    found = [launched(names, counts, {})]
    thresholds = {name: around(found[0]["regrades"][name]) for name in names}
    counts |= {name: given.regrades + int(more) for name, _, more in (m.rpartition("=") for m in given.more)}
    found += [launched(names, counts, thresholds) for _ in range(given.processes - 1)]
    print(found[0]["versions"], table(found), sep="\n")
    if given.record:
        given.record.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
