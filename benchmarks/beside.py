"""What a check takes for all that it tries beside its examples: CPU seconds of a first check of a right submission, of
the grader and the submission's process together, by mechanism, each without what it calls of others.

    python benchmarks/beside.py [ASSIGNMENT ...]
"""

from __future__ import annotations

import functools
import os
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
ASSIGNMENTS = ("vector_add", "softmax", "matmul", "dropout", "kv_cache_update", "layer_norm")
TICKS = os.sysconf("SC_CLK_TCK")


def spent() -> float:
    """CPU seconds of this process and of all that it has started."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + usage.ru_utime + usage.ru_stime + sum(map(_of, _children(os.getpid())))


def _of(pid: int) -> float:
    """CPU seconds of a process, of those that it has waited for, and of its children that still run."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS + sum(map(_of, _children(pid)))


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


class Shares:
    """CPU seconds by mechanism; what one mechanism calls of another counts for the other."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._open, self._since = ["the rest"], spent()

    def turn(self) -> None:
        """Counts what was spent since the last turn for the mechanism that is at work."""
        now = spent()
        self.seconds[self._open[-1]] += now - self._since
        self._since = now

    def timed(self, name: str, function: Callable[..., Any], when: Callable[..., bool] = lambda *a, **k: True) -> Any:
        """The function; what its calls take is counted for a mechanism."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not when(*args, **kwargs):
                return function(*args, **kwargs)
            self.turn()
            self._open.append(name)
            try:
                return function(*args, **kwargs)
            finally:
                self.turn()
                self._open.pop()

        return call


def watch(shares: Shares) -> None:
    """Has the calls of each mechanism counted."""
    from gradekit import relations
    from gradekit.engine import executor
    from gradekit.exact.trial import _Trial
    from gradekit.plugin import beside_examples, check_run, further_run
    from gradekit.unseen.host_inputs import HostInputs

    assert check_run
    beyond: set[str] = set()
    found = HostInputs._beyond_numbers

    def noted(self: Any, *args: Any) -> Any:
        for call in found(self, *args):
            beyond.add(repr(call.call))
            yield call

    HostInputs._beyond_numbers = noted  # type: ignore[method-assign]
    _Trial._hold_roundings = shares.timed("roundings", _Trial._hold_roundings)  # type: ignore[method-assign]
    further = further_run.FurtherInputs
    run_one = shares.timed(
        "layouts beyond host numbers", further._run_one, lambda self, call, *rest: repr(call.call) in beyond
    )
    further._run_one = shares.timed(  # type: ignore[method-assign]
        "other further inputs", run_one, lambda self, call, *rest: repr(call.call) not in beyond
    )
    kept = shares.timed("kept memory", executor.run, lambda *a, conditions=None, **k: bool(conditions and conditions.earlier))
    executor.run = kept  # type: ignore[attr-defined]
    for module, name, mechanism in (
        (beside_examples, "exact_runs", "exact runs"),
        (beside_examples, "relations", "relations"),
        (beside_examples, "_assert_right_after_other_sizes", "kept memory"),
        (relations, "assert_independent", "repeated calls"),
        (relations, "assert_computes_anew", "repeated calls"),
    ):
        _everywhere(getattr(module, name), shares.timed(mechanism, getattr(module, name)))


def _everywhere(old: Any, new: Any) -> None:
    """Puts a function in place of another in all modules of gradekit."""
    for module in [one for name, one in sys.modules.items() if name.startswith("gradekit")]:
        for name, value in [*vars(module).items()]:
            if value is old:
                setattr(module, name, new)


def main() -> None:
    """Prints a row for each assignment, each in a process of its own."""
    if len(sys.argv) == 3 and sys.argv[1] == "--one":
        return one(sys.argv[2])
    for assignment in sys.argv[1:] or ASSIGNMENTS:
        sys.stdout.flush()
        os.spawnv(os.P_WAIT, sys.executable, [sys.executable, __file__, "--one", assignment])
    return None


def one(assignment: str) -> None:
    """Prints what one assignment's solution takes."""
    sys.path.insert(0, str(ROOT))
    from gradekit import checking
    from gradekit.request import GradingOptions
    from gradekit.sandbox import host

    shares = Shares()
    watch(shares)
    checking.check(ROOT / "solutions" / assignment / "solution.py", assignment, GradingOptions(jobs=1, device="cpu"))
    shares.turn()
    host.stop()
    total = sum(shares.seconds.values())
    parts = sorted(shares.seconds.items(), key=lambda pair: -pair[1])
    print(f"{assignment}: {total:.1f} s  " + "  ".join(f"{name} {100 * s / total:.1f} %" for name, s in parts))


if __name__ == "__main__":
    main()
