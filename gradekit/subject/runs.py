"""Runs of traced calls: under every configuration that computes something else, and never the same one twice.

Runs in the grader's process, on data alone. What the engine finds nothing wrong with goes to the card too, where there
is one, for races and roundings differ there; what the engine does not know is judged by the card's values alone.
"""

from __future__ import annotations

import functools
import itertools
import math
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from gradekit.engine import branch_coverage, executor, traffic
from gradekit.engine.branch_coverage import merged
from gradekit.engine.budget import Budget, OverBudget, Unsupported
from gradekit.engine.conditions import Conditions
from gradekit.engine.def_use import ATOMICS
from gradekit.engine.executor import RunResult, Setup, run_setup
from gradekit.engine.kernel_facts import every_operation, facts, parsed
from gradekit.engine.memory import strided
from gradekit.engine.observer import Owners
from gradekit.engine.trials import run_with_trials
from gradekit.findings import Cause, Finding
from gradekit.inputs.spec import Input, values_of
from gradekit.inputs.value_kinds import PROFILES
from gradekit.judge.contents import Results, nbytes
from gradekit.judge.failure import Failure, Idle
from gradekit.observations import Counters
from gradekit.program import ITEMSIZE, Allocate, Copy, Kernel, Launch, Program, View, every_step, run_steps, writes
from gradekit.reuse import LruCache
from gradekit.sandbox import MANY
from gradekit.subject import Limit, rules, run_cache
from gradekit.subject.call_spec import CHANGED, CallSpec, has_tensors
from gradekit.subject.device import Device, NeedsCard
from gradekit.subject.rules import Soundness
from gradekit.subject.written import Contracts

if TYPE_CHECKING:
    from gradekit.assignment import Assignment
    from gradekit.submission import Submission

_DO_NOT_FIT = (Cause.OUT_OF_RESOURCES, Cause.COMPILATION_ERROR)
"""Why Triton's autotuner leaves a configuration out: it needs more shared memory than there is, for example."""

Substitution = Callable[[Sequence[torch.Tensor], Sequence[Any]], Sequence[torch.Tensor]]
"""Makes the results that are to be judged from the expected ones and the input tensors: see gradekit.judge.trivial."""


@dataclass(frozen=True, eq=False)
class Observation:
    """What one call of the entry showed.

    `inputs` are the arguments as the test gave them, `results` the tensors and numbers that the call returned, in
    order. `findings` are those of every configuration. `variants` are the same call under the other configurations of
    an autotuned kernel, each with its `label`, on a `card`, and under `conditions` that a card leaves open (see
    gradekit.engine.trials): they must be right too. `unknown` is why nothing but the results is known, where the card
    alone could run it. Of a backward pass, `wanted` has the positions of the arguments whose gradients are its results;
    where only one of them is looked at, `part` is its place among these. `ways` is the engine's branch coverage: for
    each kernel, by the number of an operation. Where no kernel made the results, `idle` says so.
    """

    entry: str
    inputs: tuple[Any, ...]
    results: Sequence[Any]
    findings: tuple[Finding, ...]
    counters: Any
    program: Program
    prints: tuple[str, ...] = ()
    label: str = ""
    variants: tuple[Observation, ...] = ()
    substitute: Callable[..., Sequence[torch.Tensor]] | None = None
    card: str = ""
    conditions: str = ""
    unknown: Unsupported | None = None
    wanted: tuple[int, ...] = ()
    part: int | None = None
    ways: branch_coverage.WaysByKernel = field(default_factory=dict)
    idle: Idle | None = None

    @property
    def circumstance(self) -> str:
        """The beginning of a sentence about this run, where it was not the first configuration on the engine."""
        configured = f"with the configuration {self.label}" if self.label else ""
        told = self.program.multiprocessors
        gpu = f"on a GPU with {told} multiprocessor{'s' * (told > 1)}" if 0 < told < MANY else ""
        return ", ".join(filter(None, (self.conditions, f"on {self.card}" if self.card else gpu, configured)))

    @property
    def tensor(self) -> torch.Tensor:
        """The result, where the call returns exactly one tensor. Raises Failure where it returned something else."""
        if len(self.results) != 1 or not isinstance(self.results[0], torch.Tensor):
            raise Failure(Cause.WRONG_TYPE, f"{self.entry} returns {self.program.returned}, not one tensor.")
        return self.results[0]


@dataclass(frozen=True)
class Case:
    """A call to be run: what was `asked` for, its `args` as the test gave them, and the `program` that it became."""

    spec: CallSpec
    args: tuple[Any, ...]
    program: Program

    @property
    def entry(self) -> str:
        """The function that is called."""
        return self.spec.form.entry

    @property
    def wanted(self) -> tuple[int, ...]:
        """The positions of the arguments whose gradients are its results; that of the result is the last of `args`."""
        return self.spec.form.wanted

    @property
    def number(self) -> int:
        """One that differs between calls, and is the same for each grader."""
        told = tuple((a.dtype, a.shape, a.stride()) if isinstance(a, torch.Tensor) else a for a in self.args)
        return zlib.crc32(repr(told).encode())

    @cached_property
    def tensors(self) -> list[torch.Tensor]:
        """Those among the arguments, in order."""
        return [values_of(arg) for arg in self.args if isinstance(arg, (Input, torch.Tensor))]

    def other_tensors(self) -> list[torch.Tensor]:
        """Tensors that an earlier call of the form may have had: other floats, of every second call so large that sums
        overflow, and whole numbers as large as promised, where nothing says how they go together."""
        together, large = any(isinstance(a, Input) and a.ascending for a in self.args), self.number >> 16 & 1
        specs = [_other(a, bool(large)) if isinstance(a, Input) and not together else a for a in self.args]
        return replace(self, args=tuple(specs)).tensors


def _storage_bytes(arg: Any) -> int:
    """Bytes of an argument's storage, without drawing its values: where an earlier run serves, nobody needs them."""
    if isinstance(arg, Input):
        return arg.storage_size * ITEMSIZE[arg.dtype]
    return arg.untyped_storage().nbytes() if isinstance(arg, torch.Tensor) else 0


def _other(spec: Input, large: bool) -> Input:
    if spec.within is not None:
        return replace(spec, profile=f"most:{spec.within[0]}:{spec.within[1]}")
    profile = "large" if large and spec.profile in PROFILES and "float" in spec.dtype else spec.profile
    return replace(spec, seed=spec.seed + 1, profile=profile)


@dataclass
class Share:
    """How many runs of a check the card gets, for which kernels must be compiled: `most`, every `stride`-th."""

    most: int = 0
    stride: int = 1
    taken: int = 0
    seen: int = 0

    def takes(self) -> bool:
        """Whether the run that is asked for now is one of them."""
        mine = self.taken < self.most and self.seen % self.stride == 0
        self.seen += 1
        self.taken += mine
        return mine


class Runs:
    """The runs of one submission, also on the card of `device`. With `substitute`, the judge sees a trivial wrong
    result in place of each, and no card is needed. `most_work` is what all runs may use together, `work` what they have
    used, `repeated_work` what known calls took."""

    def __init__(
        self, submission: Submission, assignment: Assignment, substitute: Substitution | None, device: Device,
        most_work: int,
    ) -> None:  # fmt: skip
        self._most_work = most_work
        self.submission = submission
        self.assignment = assignment
        self.substitute = substitute
        self.contracts = Contracts(assignment)
        self._lists = assignment.lists
        self._device = device
        self._share = Share()
        self._seen: LruCache[CallSpec, Observation | Failure] = LruCache(Limit.REMEMBERED_BYTES, _weight)
        self._overdue = False
        self._too_large: set[str] = set()  # entries of which a call takes too much with all programs
        self._costs: dict[str, int] = {}
        self.work = self.repeated_work = self._of_check = 0
        self._in_check = False
        self.limit, self._begun = (0, False), 0
        self.soundness = Soundness()

    def begin_check(self, share: Share) -> None:
        """A new check begins, of whose runs the card gets a `share`."""
        self._share, self._of_check, self._in_check = share, 0, True

    @property
    def used(self) -> float:
        """The share of its budget that this check's calls have used, whether or not an earlier check made them too."""
        return self._of_check / self._most_work

    def known(self, spec: CallSpec) -> Observation | None:
        """What an earlier run of the call showed, if remembered. Raises Failure where it was stopped."""
        outcome = self._seen.get(spec)
        if isinstance(outcome, Failure):
            raise outcome.with_traceback(None)
        if outcome is not None and self._in_check:
            self._of_check += self._costs[spec.signature]
            self.repeated_work += self._costs[spec.signature]
        return outcome

    def run(self, case: Case) -> Observation:
        """The observation of `case`. Raises Failure for a broken rule or budget, Unsupported for an unknown kernel."""
        before = self._begun = self.work
        try:
            idle = self._hold_against_rules(case)
            outcome = replace(self._everywhere(case), idle=idle)
        except Failure as failure:
            self._remember(case, failure)
            raise
        self._remember(case, outcome)
        self._costs[case.spec.signature] = self.work - before
        return outcome

    def again(self, case: Case) -> Observation:
        """The observation of a call that was made before and has become another program since; it is not remembered.
        Rules were applied to the call itself, where its tensors are changed in place here."""
        idle = self._hold_against_rules(case) if case.spec.form.way != CHANGED else None
        return replace(self._in_all_configurations(case), idle=idle)

    def _hold_against_rules(self, case: Case) -> Idle | None:
        allow = self.assignment.allow
        if not case.wanted:
            writes = self.contracts.results(case.entry) is not None
            return rules.check_program(case.program, case.entry, allow, self.submission, writes=writes)
        names = rules.argument_names(case.args, case.entry, self.submission, self._lists)
        return rules.check_gradients(case.program, case.entry, allow, [names[position] for position in case.wanted])

    def _everywhere(self, case: Case) -> Observation:
        """On the engine, and on the card where its turn has come or the engine does not know the program."""
        try:
            seen = self._in_all_configurations(case)
        except Unsupported as error:
            if self._device.card is None or case.program.folds:
                raise
            return self._by_the_card_alone(case, error)
        if self._device.card is None or case.program.folds or seen.findings or not self._share.takes():
            return seen
        options = rules.options(case.program)
        turn = self._share.taken % len(options)  # each configuration gets its turn
        try:
            (carded,) = self._those_that_fit(case, [*options[turn:], *options[:turn]], enough=1)
        except NeedsCard:  # the card failed for a reason of its own, which the report tells: the engine's result counts
            return seen
        return replace(seen, findings=seen.findings + carded.findings, variants=(*seen.variants, carded))

    def _by_the_card_alone(self, case: Case, error: Unsupported) -> Observation:
        first, *others = self._those_that_fit(case, rules.options(case.program))
        findings = first.findings + tuple(finding for other in others for finding in other.findings)
        return replace(first, findings=findings, unknown=error, variants=tuple(others))

    def _those_that_fit(self, case: Case, options: Sequence[tuple[int, str]], enough: int = 99) -> list[Observation]:
        """The runs of the first so many options; a configuration that the card cannot run, Triton leaves out too."""
        found: list[Observation] = []
        for position, (option, label) in enumerate(options):
            try:
                found.append(self._on_the_card(case, option, label))
            except Failure as failure:
                last = position == len(options) - 1
                if failure.cause not in _DO_NOT_FIT or (last and not found):
                    raise
            if len(found) == enough:
                break
        return found

    def _on_the_card(self, case: Case, option: int, label: str) -> Observation:
        allow, names = self.assignment.allow, self._tensor_names(case)
        run = self._device.run(case.program, case.tensors, option=option, allow=allow, entry=case.entry, names=names)
        results = self._own(case, tuple(run.results))
        counters = self._counters(case, rules.host_counters(case.program, option))
        seen = Observation(
            case.entry, case.args, results, (), counters, case.program, tuple(run.prints), label,
            substitute=None, card=self._device.need().name, wanted=case.wanted,
        )  # fmt: skip
        where = seen.circumstance[:1].upper() + seen.circumstance[1:]
        return replace(seen, findings=tuple(replace(f, message=f"{where}: {f.message}") for f in run.findings))

    def _in_all_configurations(self, case: Case) -> Observation:
        shared: dict[tuple[bytes, ...], Sequence[Any]] = {}
        runs = (self._once(case, option, label) for option, label in rules.options(case.program))
        first, *others = [self._sharing(seen, shared) for seen in runs]
        if not others:
            return first
        variants = (*first.variants, *(variant for other in others for variant in (other, *other.variants)))
        findings = first.findings + tuple(
            replace(f, message=f"With the configuration {o.label}: {f.message}") for o in others for f in o.findings
        )
        ways = branch_coverage.together(one.ways for one in (first, *others))
        return replace(first, findings=findings, variants=variants, ways=ways)

    def _sharing(self, seen: Observation, shared: dict[tuple[bytes, ...], Sequence[Any]]) -> Observation:
        """With the results of an equal configuration, if there is one; Failure where others take too much."""
        contents = seen.results.contents if isinstance(seen.results, Results) else None
        if contents is None:
            return seen
        results = shared.setdefault(contents, seen.results)
        if len(shared) > 1 and sum(map(nbytes, shared.values())) > Limit.CONFIGURATION_BYTES:
            message = f"{seen.entry} gives other results in its {len(shared)} configurations, which take too much "
            raise Failure(Cause.BUDGET_EXCEEDED, f"{message}memory together.")
        return replace(seen, results=results)

    def _once(self, case: Case, option: int, label: str) -> Observation:
        with rules.within_budget(case.entry, ""):  # where these depend on others
            some = SomePrograms.of(case.program, option) if self.limit[1] else None
        try:
            seen = self._ran(case, option, label, some)
        except Failure as failure:
            if failure.cause is not Cause.BUDGET_EXCEEDED or failure.seen or any(self.limit):
                raise
            some, seen = self._in_part(case, option, failure)
            self._too_large.add(case.entry)
        self.work += seen.counters.work
        self._of_check += seen.counters.work
        ways = branch_coverage.by_kernel(case.program, option, seen.ways)
        results = self._own(case, seen.results)
        findings = tuple(seen.findings)
        if results is not seen.results:
            findings = tuple(self.contracts.findings(case.entry, case.program, findings))
        observation = Observation(
            case.entry, case.args, results, findings, self._counters(case, seen.counters), case.program,
            tuple(seen.prints), label, substitute=some.together if some else self._substitution(case),
            wanted=case.wanted, ways=ways,
        )  # fmt: skip
        others = (
            replace(observation, results=self._own(case, v.results), findings=(), conditions=v.circumstance)
            for v in seen.variants
        )
        return replace(observation, variants=tuple(others))

    def _ran(self, case: Case, option: int, label: str, some: SomePrograms | None) -> RunResult:
        """A run of all programs, or of `some`. Raises Failure where it takes more than its budget."""
        names, allow, budget = self._tensor_names(case), self.assignment.allow, self._budget(case, option)

        def once(conditions: Conditions) -> RunResult:
            return executor.run(
                case.program, case.tensors, option=option, allow=allow, budget=budget, names=names,
                conditions=conditions,
            )  # fmt: skip

        def run_it() -> RunResult:
            with rules.within_budget(case.entry, label), self.soundness.answers_for(case.program, case.entry):
                if some is not None:
                    return some.run(case.tensors, option, allow, budget)
                return run_with_trials(case.program, once, case.number, case.other_tensors)

        try:
            if some is not None:
                return run_cache.uncached(run_it(), functools.partial(self._results_of, some, case.entry))
            if self._overdue:  # then it may be cut off early
                return run_cache.uncached(run_it())
            key = run_cache.key_of(case.program, option, case.spec, allow)
            return run_cache.runs.current.get_or_run(key, run_it)
        except Failure as failure:
            if failure.cause is Cause.BUDGET_EXCEEDED:
                self.work += budget.work
                self._of_check += budget.work if self._overdue else 0  # the first that is cut off is not counted
            raise

    def _in_part(self, case: Case, option: int, failure: Failure) -> tuple[SomePrograms, RunResult]:
        """Some programs in place of all, which were too many, with the traffic of all as a sample tells it. Raises the
        `failure` of all where these take too much themselves, or none can be run alone."""
        budget = Budget(Limit.HURRY, self._most_bytes(case))
        try:
            some = SomePrograms.of(case.program, option)
            with self.soundness.answers_for(case.program, case.entry):
                ran = some.run(case.tensors, option, self.assignment.allow, budget)
                counted = traffic.count(case.program, case.tensors, chosen=option, budget=budget)
        except OverBudget:
            raise failure from None
        moved = {"bytes_loaded": int(counted.bytes_loaded), "bytes_stored": int(counted.bytes_stored)}
        ran = replace(ran, counters=replace(ran.counters, flops=int(counted.flops), **moved))

        def none_to_look_at() -> Sequence[Any]:
            raise failure

        return some, run_cache.uncached(ran, none_to_look_at)

    def _results_of(self, some: SomePrograms, entry: str) -> Sequence[Any]:
        """Those of a call that is made in part: a test that looks at them itself cannot use unwritten ones."""
        with rules.within_budget(entry, ""):
            if self.limit[1]:
                raise OverBudget("programs", len(some.ids))
        return some.results

    def _counters(self, case: Case, counters: Counters) -> Counters:
        return counters if case.wanted else self.contracts.counters(case.entry, case.program, counters)

    def _own(self, case: Case, results: Sequence[Any]) -> Sequence[Any]:
        """The results as the domain counts them, without the storages of what the call may write."""
        count = None if case.wanted else self.contracts.results(case.entry)
        return results if count is None or len(results) <= count else results[:count]

    def _tensor_names(self, case: Case) -> list[str]:
        named = zip(rules.argument_names(case.args, case.entry, self.submission, self._lists), case.args, strict=True)
        return [name for name, arg in named if isinstance(arg, (Input, torch.Tensor))]

    def _budget(self, case: Case, option: int) -> Budget:
        """The rest of what all runs of the check may use; Failure where nothing is left."""
        most = min(Limit.CHECK_IN_A_HURRY, self._most_work) if self._overdue else self._most_work
        left = min(most - self._of_check, Limit.WORK_IN_ALL - self.work)
        if self.limit[0]:
            left = min(left, self.limit[0] - (self.work - self._begun))
        if left <= 0:
            used = f"the kernels of earlier calls have used up the {most:,} element operations that a check may take."
            raise Failure(Cause.BUDGET_EXCEEDED, f"{case.entry} was not run: {used}")
        brief = self._overdue or case.entry in self._too_large and SomePrograms.can_be(case.program, option)
        return Budget(min(Limit.HURRY if brief else Budget.work, left), self._most_bytes(case))

    def _most_bytes(self, case: Case) -> int:
        return max(Budget.bytes, 4 * sum(map(_storage_bytes, case.args)))

    def _substitution(self, case: Case) -> Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]] | None:
        substitute = self.substitute
        if substitute is None:
            return None
        return lambda expected, **_: substitute(expected, case.tensors)

    def _remember(self, case: Case, outcome: Observation | Failure) -> None:
        if self.limit[0] and isinstance(outcome, Failure) and outcome.cause is Cause.BUDGET_EXCEEDED:
            return
        self._overdue |= isinstance(outcome, Failure) and outcome.cause is Cause.BUDGET_EXCEEDED
        if not has_tensors(case.args):
            self._seen.put(case.spec, outcome)


def _weight(outcome: Observation | Failure) -> int:
    if isinstance(outcome, Failure):
        return 0
    return nbytes(outcome.results) + sum(map(_weight, outcome.variants))


# --- the branch coverage of a check: which ways its calls have gone through the kernels -------------------------------


@dataclass
class KernelWays:
    """For each kernel that a check's calls have run, its branch coverage by operation, and its first arguments."""

    kernels: dict[str, Kernel] = field(default_factory=dict)
    ways: dict[str, dict[int, int]] = field(default_factory=dict)

    def add(self, observation: Observation) -> None:
        """Adds what a call has shown."""
        for name, ways in observation.ways.items():
            self.kernels[name] = observation.program.kernels[name]
            self.ways[name] = merged(self.ways.get(name, {}), ways)


# --- some programs of a call that is too large to be run as a whole: what they write is compared with the reference ---
#
# Programs are independent where nothing orders them: no atomics, and no step that uses what they make but to copy it.


@dataclass(frozen=True)
class SomePrograms:
    """Some programs of a call's last launch, by their linear `ids`; the `launch` is told by its number. Of the
    `earlier` launches the same programs are run, where these are enough. Then host code `copies` what they stored.
    `wrote` has, by storage, which elements the last launch was the last to store (bool)."""

    program: Program
    earlier: range
    launch: int
    ids: Sequence[int]
    copies: Sequence[Copy] = ()
    wrote: dict[int, torch.Tensor] = field(default_factory=dict)
    results: list[Any] = field(default_factory=list)

    @staticmethod
    def of(program: Program, option: int) -> SomePrograms:
        """Of the last launch, those at the ends of its grid and some between them. Raises OverBudget where they depend
        on others, and none can be run alone; or there are not many more than so many."""
        steps = [*run_steps(program.steps, option)]
        after = [*itertools.takewhile(lambda step: isinstance(step, Allocate | Copy), reversed(steps))][::-1]
        launches = [step for step in steps if isinstance(step, Launch)]
        if not launches or steps[-1 - len(after)] is not launches[-1]:
            raise OverBudget("programs", 0)
        *others, last = launches
        x, y, z = ({one for one in (0, 1, n // 2, n - 2, n - 1) if 0 <= one < n} for n in last.grid)
        ends = (i + last.grid[0] * (j + last.grid[1] * k) for i, j, k in itertools.product(x, y, z))
        total = math.prod(last.grid)
        ids = {*ends, *range(0, total, max(total // Limit.SPREAD, 1))}
        depend = [_depend_on_others(program.kernels[launch.kernel].unaligned) for launch in launches]
        if depend[-1] or 2 * len(ids) > total:
            raise OverBudget("programs", 0 if depend[-1] else len(ids))
        alike = not any(depend) and all(launch.grid == last.grid for launch in others)
        copies = [step for step in after if isinstance(step, Copy) and step.target.storage in program.allocated]
        return SomePrograms(program, range(len(others) * alike), len(others), sorted(ids), copies)

    @staticmethod
    def can_be(program: Program, option: int) -> bool:
        """Whether a call can be made in part."""
        try:
            return bool(SomePrograms.of(program, option))
        except OverBudget:
            return False

    def run(self, inputs: Sequence[torch.Tensor], option: int, allow: Collection[str], budget: Budget) -> RunResult:
        """What comes of them alone; raises what `gradekit.engine.run` does. Earlier launches run whole where some of
        their programs are not enough: others would have written what is read, which shows only in memory that nothing
        else has filled."""
        host = [step for step in every_step(self.program.steps) if not isinstance(step, Launch)]
        unfilled = {*self.program.allocated} - {view.storage for step in host for view in writes(step)}
        for earlier in dict.fromkeys([self.earlier, range(0)]):  # in part, then whole
            owners, programs = Owners(), dict.fromkeys([*earlier, self.launch], self.ids)
            ran = run_setup(Setup(self.program, inputs, option, allow, observer=owners, programs=programs), budget)
            lacking = any(finding.cause is Cause.UNINITIALIZED_READ for finding in ran.findings)
            if not lacking and unfilled.issuperset(owners.launches):
                break
        self.results[:] = ran.results
        self.wrote.update((id, launches == self.launch) for id, launches in owners.launches.items())
        for to, origin in ((copy.target, copy.origin) for copy in self.copies if copy.origin.storage in self.wrote):
            none = torch.zeros(self.program.allocated[to.storage] // ITEMSIZE[to.dtype], dtype=torch.bool)
            _of(to, self.wrote.setdefault(to.storage, none)).copy_(_of(origin, self.wrote[origin.storage]))
        return ran

    def together(self, expected: Sequence[torch.Tensor], part: int | None = None) -> list[Any]:
        """What is expected of the call, or of its result at place `part` alone, with the elements that they wrote in
        place of its own."""
        only = slice(part, None if part is None else part + 1)
        found = zip(self.program.results[only], self.results[only], expected, strict=False)
        return [self._where(view, mine, wanted) for view, mine, wanted in found]

    def _where(self, view: Any, mine: Any, wanted: torch.Tensor) -> Any:
        if not isinstance(mine, torch.Tensor) or (mine.shape, mine.dtype) != (wanted.shape, wanted.dtype):
            return mine
        if view.storage not in self.wrote:
            return wanted
        return torch.where(_of(view, self.wrote[view.storage]), mine, wanted)


def _of(view: View, elements: torch.Tensor) -> torch.Tensor:
    return strided(elements, view.shape, view.stride, view.offset)


def _depend_on_others(ttir: str) -> bool:
    return facts(ttir).ordered or any(op.name in ATOMICS for op in every_operation(parsed(ttir)))
