"""The submission as a test sees it: something to call, which answers with what a run of the call showed.

    observation = submission.softmax(x)          # x: an Input spec, a tensor, a number, or None; see `entry`

Runs in the grader's process. A call is traced to a program in the tracer's process, once for each signature: shapes,
strides, offsets, dtypes, scalars, shared storages. What the program does is for `runs` to see.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from gradekit.engine.budget import Unsupported
from gradekit.exact.places import kept_in_half
from gradekit.findings import Cause
from gradekit.framework import Inspection
from gradekit.inputs.spec import Input, with_other_values
from gradekit.judge.contents import Results
from gradekit.judge.evidence import UPSTREAM
from gradekit.judge.failure import Idle
from gradekit.origins import Explored, Origins
from gradekit.program import Argument, Program, folded
from gradekit.sandbox import Form, Loaded, TraceError, Tracer
from gradekit.subject import Limit, digest, rules
from gradekit.subject.call_spec import (
    AFTER,
    CHANGED,
    TWICE,
    CallSpec,
    another_upstream,
    call_spec,
    with_another_number,
    with_other_numbers,
    with_others,
)
from gradekit.subject.device import Device
from gradekit.subject.runs import Case, KernelWays, Observation, Runs, Share, Substitution
from gradekit.subject.timed_call import SpeedTrial, Timed, measure
from gradekit.submission.reach import reach

if TYPE_CHECKING:
    from gradekit.assignment import Assignment
    from gradekit.submission import Submission

GLUON = "This kernel is written in Gluon"
"""What the tracer says of a kernel in another language than Triton's own: the check is pending, by that name."""


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a test: its arguments, what came of it (None where it failed), and which gradients were wanted."""

    entry: str
    args: tuple[Any, ...]
    observation: Observation | None = None
    wanted: tuple[int, ...] = ()


class Subject:
    """A submission that tests can call, by the name of any function that it defines.

    `start` makes a tracer for the submission: it is called at the first use, and again after one has died. With
    `substitute`, the judge sees a trivial wrong result in place of the submission's. `device` has the card, if any may
    be used. Where it `is_brief`, each form is traced once, and its runs may use little work. `programs` were recorded
    elsewhere (`programs_to_time`): these forms of calls are not traced. `calls` are those made since
    `forget_calls`; `found_in_memory` has the first call that showed each thing wrong in memory;
    `timings` what was timed, and `forms` what was called, since `begin_check`.

    Whatever asks a process of the submission's raises TraceError where that was lost, or where the student's code could
    not be traced: it raised, hung, died, or did what it may not. What runs a program raises a Failure where it breaks a
    rule or uses up its budget, and Unsupported where the engine cannot know what a kernel does.
    """

    def __init__(
        self, submission: Submission, assignment: Assignment, start: Callable[[], Tracer],
        substitute: Substitution | None = None, device: Device | None = None,
        programs: Mapping[str, Program] | None = None, is_brief: bool = False,
    ) -> None:  # fmt: skip
        self.submission = submission
        self.assignment = assignment
        self.device = device if device is not None and substitute is None else Device("cpu")
        self.calls: list[Call] = []
        self.found_in_memory: dict[tuple[Cause, int | None, str], Call] = {}
        self.timings: list[Timed] = []
        self.forms: dict[str, Form] = {}
        self.branches = KernelWays()
        self._runs = Runs(submission, assignment, substitute, self.device, Limit.BRIEF_WORK if is_brief else Limit.WORK)
        self._is_brief = is_brief
        self._last_trial: tuple[SpeedTrial, Timed] | None = None
        self._start = start
        self._tracer: Tracer | None = None
        self._exploring: Tracer | None = None
        self._programs: dict[str, Program | TraceError] = dict(programs or {})
        self._to_time: dict[str, Program] = {}
        self._inspections: dict[tuple[str, tuple[int, ...]], Inspection] = {}
        # by entry, and what of it is wanted: whether the second call of all did the same as the first
        self._steady: dict[tuple[str, tuple[int, ...]], bool] = {}
        self._expected: dict[str, Form] = {}
        self._deaths: list[TraceError] = []
        self._idle: list[tuple[Call, Idle]] = []  # calls of this check whose results no kernel made
        self._working: set[str] = set()  # entries of which a kernel has made a result

    def __getattr__(self, name: str) -> Entry:
        if name.startswith("_"):
            raise AttributeError(name)
        return Entry(self, name)

    @property
    def text(self) -> str:
        """The source: a test may look for what is wrong at the numbers that it has."""
        return self.submission.text

    def __repr__(self) -> str:  # Hypothesis shows the arguments of a failing test: not all that is remembered here
        return f"Subject({self.submission.path!r})"

    def call(
        self, entry: str, args: Sequence[Any], wanted: tuple[int, ...] = (), on_one_gpu: bool = False
    ) -> Observation:
        """The observation of a call, as `call_spec` describes it."""
        args = tuple(args)
        self.calls.append(Call(entry, args, wanted=wanted))
        this = call_spec(entry, args, wanted, on_one_gpu=on_one_gpu)
        self.forms.setdefault(this.signature, this.form)
        observation = self._runs.known(this) or self._runs.run(Case(this, args, self.program(this)))
        self._note_kernels(observation, this.form)
        self.calls[-1] = Call(entry, args, observation, wanted)
        self.branches.add(observation)
        for finding in observation.findings:
            self.found_in_memory.setdefault((finding.cause, finding.line, finding.kernel), self.calls[-1])
        return observation

    @contextlib.contextmanager
    def within(self, work: int, in_part: bool) -> Iterator[None]:
        """While open, a call may take so much `work` and costs no other its budget (0: what is left of the check's);
        `in_part`, some programs of its last launch are run, and what they write is looked at."""
        self._runs.limit = work, in_part
        try:
            yield
        finally:
            self._runs.limit = 0, False

    def traced(
        self, entry: str, args: Sequence[Any], wanted: tuple[int, ...] = (), on_one_gpu: bool = False
    ) -> Program:
        """The program of a call that no check makes: it is not run, and no other call depends on it."""
        return self.retraced(call_spec(entry, tuple(args), wanted, on_one_gpu=on_one_gpu).form)

    def again(self, seen: Observation) -> Observation | None:
        """The call of `seen` made once more, after all calls in between; None where it became the very same program."""
        this = call_spec(seen.entry, seen.inputs, seen.wanted)
        before, program = self.program(this), self.retraced(this.form)
        self.calls[:] = [Call(seen.entry, seen.inputs, seen)]
        if program == before:
            return None
        return _same_part(seen, self._runs.again(Case(this, tuple(seen.inputs), program)))

    def interleaved(self, seen: Observation, turn: int, like: Observation) -> Observation | None:
        """The call of `seen` and its backward pass, with another call between the two, which has other values, of kinds
        `like` those of another call, and, each in turn, one other number; None where it has no backward pass."""
        if not seen.wanted:
            return None
        return self._with_another(seen, with_another_number(seen.inputs[:-1], like.inputs, turn), "")

    def changed_in_place(self, seen: Observation) -> Observation:
        """The call of `seen` with tensors that had other values in a call before, and were changed in place since."""
        written = self._runs.contracts.written(seen.entry)
        others = (with_other_values(arg) if isinstance(arg, Input) else arg for arg in _own(seen))
        return self._with_another(seen, (None if n in written else arg for n, arg in enumerate(others)), CHANGED)

    def after(self, seen: Observation, other: Observation) -> Observation:
        """The call of `seen` after the call (without its backward pass) of `other`, whose sizes may be others."""
        return self._with_another(seen, other.inputs[: len(_own(seen))], AFTER)

    def _with_another(self, seen: Observation, others: Iterable[Any], way: str) -> Observation:
        """The call of `seen` in a program that has another call of the entry, with `others`, in this `way`."""
        this, args = with_others(seen.entry, seen.inputs, seen.wanted, [*others], way)
        return _same_part(seen, self._once_more(seen, this, args))

    def _once_more(self, seen: Observation, this: CallSpec, args: tuple[Any, ...]) -> Observation:
        """The call of `seen` made in another way: as a report shows it, it is that of `seen`."""
        program = self.retraced(this.form)
        self.calls[:] = [Call(seen.entry, seen.inputs, seen)]
        return self._runs.again(Case(this, args, program))

    def in_way(self, seen: Observation, way: str, wanted: Sequence[int], turn: int) -> Observation:
        """The call of `seen` in another `way` (see `gradekit.tracer.trace`), with the gradients of `wanted` alone. What
        a backward pass that comes before is given lies otherwise in every second `turn`."""
        if way == TWICE:
            others = [another_upstream(seen.inputs[-1], turn)]
            return self._once_more(seen, *with_others(seen.entry, seen.inputs, tuple(wanted), others, way))
        this = call_spec(seen.entry, seen.inputs, tuple(wanted))
        form = replace(this.form, way=way)
        return self._once_more(seen, CallSpec(form, form.name, this.key), tuple(seen.inputs))

    def retraced(self, form: Form) -> Program:
        """The program of a call, traced anew: what was made before may have left something behind."""
        return _or_raise(self._trace(form))

    def time(self, entry: str, args: Sequence[Any], against: Callable[..., Any], expected: Callable[..., Any]) -> Timed:
        """`entry(*args)` timed on the card beside `against`, its results compared with `expected`, once it keeps the
        rules. Raises NeedsCard where there is no card, and Failure where a result is wrong."""
        args = tuple(args)
        self.calls.append(Call(entry, args))
        this = call_spec(entry, args, timed=True)
        program = self._program_to_time(this, args)
        if idle := rules.check_program(program, entry, self.assignment.allow, self.submission):
            raise idle.offence
        self._to_time[this.signature] = program
        timed = self._timed(SpeedTrial(entry, args, against, expected, program, self.assignment.allow))
        timed.cards = self.assignment.cards
        self.timings.append(timed)
        return timed

    def _program_to_time(self, this: CallSpec, args: Sequence[Any]) -> Program:
        """With every configuration; Unsupported where lowering so many alone fails."""
        try:
            return self.program(this)
        except TraceError as error:
            if error.cause not in (Cause.BUDGET_EXCEEDED, Cause.TIMEOUT):
                raise
            some = self.program(call_spec(this.form.entry, args))
            if not some.choices():
                raise
            raise Unsupported(f"every configuration of {this.form.entry} in one call ({error.said})") from None

    def inspect(self, entry: str, args: Sequence[Any], wanted: tuple[int, ...]) -> Inspection:
        """What torch makes of a model around `entry`, once for each form. Raises Unsupported where torch.compile does
        not work here, or the entry asks where its tensors are."""
        self.calls.append(Call(entry, tuple(args)))
        this = call_spec(entry, args)
        self.forms.setdefault(this.signature, replace(this.form, wanted=wanted))
        if (key := (this.signature, wanted)) not in self._inspections:
            self._inspections[key] = self._loaded().inspect(entry, this.form.args, wanted)
        return _certain(self._inspections[key], self.submission.text)

    def _timed(self, trial: SpeedTrial) -> Timed:
        """Two checks about the same call share its figures, but not each other's verdicts."""
        if self._last_trial is None or not self._last_trial[0].same(trial):
            if self._last_trial is not None:
                self._last_trial[1].release()
            self._last_trial = None
            self._last_trial = trial, measure(trial, self.device)
        return replace(self._last_trial[1], verdicts=[])

    def follow(self, form: Form) -> tuple[Program, Origins]:
        """A call's program and the origins of its numbers, to prove things of it."""
        return self._loaded().follow(form)

    def explore(self, form: Form) -> Explored:
        """What host code compares in a call. A process of its own is asked: no call of a check depends on it."""
        return self._explorer().explore(form)

    def instructions(self, entry: str, args: Sequence[Argument]) -> int:
        """What `Tracer.instructions` gives."""
        return self._explorer().instructions(entry, args)

    def program_apart(self, form: Form) -> Program:
        """The program of a call that no check makes, from a process of its own: no call of a check depends on it."""
        return self._traced(self._explorer(), form)

    def _explorer(self) -> Tracer:
        if self._exploring is None:
            self._exploring = self._start()
        return self._exploring

    def assert_kernels_work(self) -> None:
        """Raise unless kernels make the results of this check's calls, but for calls that leave nothing to compute.

        A call without a kernel was right, and either lacks elements to compute with or is one of an entry that launches
        kernels in other calls. Of an entry without any tensor there is always something left. Raises Failure
        (no-kernel; `calls` then has the call).
        """
        for call, idle in self._idle:
            tensors = [arg for arg in call.args if isinstance(arg, (Input, torch.Tensor))]
            lacks_elements = any(math.prod(tensor.shape) == 0 for tensor in tensors)
            if not tensors or not (call.entry in self._working or (idle.is_right and lacks_elements)):
                self.calls[:] = [call]
                raise idle.offence

    def _note_kernels(self, seen: Observation, form: Form) -> None:
        """Keeps whether kernels made the results; Failure where an input is copied, whatever the numbers."""
        if seen.idle is None:
            if any(seen.program.launches()):
                self._working.add(seen.entry)
        elif seen.substitute is None:
            if seen.idle.copies:
                if not any(map(self._launches, with_other_numbers(form))):
                    raise seen.idle.offence
                self._working.add(seen.entry)
            self._idle.append((self.calls[-1], seen.idle))

    def _launches(self, form: Form) -> bool:
        try:
            return any(self.program_apart(form).launches())
        except TraceError:
            return False

    @property
    def work(self) -> int:
        """What the calls made so far take, in units of the engine's budget, also of those that were made before."""
        return self._runs.work + self._runs.repeated_work

    @property
    def used(self) -> float:
        """The share of the work that a check may take which this check has used."""
        return self._runs.used

    @property
    def programs(self) -> list[Program]:
        """What the calls became so far, each form of call once."""
        return [program for program in self._programs.values() if isinstance(program, Program)]

    def keeps_half(self, signature: str) -> bool:
        """Whether a call was made whose program keeps numbers in float16 between two of its steps."""
        program, form = self.program_of(signature), self.forms.get(signature)
        return program is not None and form is not None and kept_in_half(program, form.upstream)

    def program_of(self, signature: str) -> Program | None:
        """That of a call that was made; None where there is none."""
        program = self._programs.get(signature)
        return program if isinstance(program, Program) else None

    @property
    def digests(self) -> dict[str, str]:
        """What each call's program computes (see subject.digest), by a digest of the call; "" where tracing failed."""
        return {
            hashlib.sha256(signature.encode()).hexdigest()[:16]: digest.of_program(program).hex()[:16]
            if isinstance(program, Program) else ""
            for signature, program in self._programs.items()
        }  # fmt: skip

    @property
    def programs_to_time(self) -> dict[str, Program]:
        """What the calls to be timed became, by form: another Subject takes it as `programs`, where a card is."""
        return dict(self._to_time)

    def begin_check(self, share: Share) -> None:
        """A new check begins, of whose runs the card gets a `share`."""
        self.forget_calls()
        self.timings.clear()
        self._idle.clear()
        self.forms, self._expected, self.branches = {}, {}, KernelWays()
        if self._tracer is not None:
            self._tracer.forget_planned()
        self._runs.begin_check(share)

    def expect(self, forms: Mapping[str, Form]) -> None:
        """This check is going to make calls of these `forms`, most likely: they are traced while others run."""
        self._expected = {name: form for name, form in forms.items() if name not in self._programs}
        self._trace_ahead()

    def forget_calls(self) -> None:
        """A new example begins: what was called before is not evidence for it."""
        self.calls.clear()

    def start(self) -> None:
        """Starts all processes that it needs, so that a fork of this one has them."""
        self._tracer, self._exploring = self._start(), self._start()
        self._tracer.start()
        self._exploring.start()
        self._runs.soundness.start()

    def load(self) -> Loaded:
        """What the submission defines, once it has been executed in its own process."""
        if self._tracer is None:
            self._tracer = self._start()
        return self._tracer.load()

    def _loaded(self) -> Tracer:
        self.load()
        assert self._tracer is not None
        return self._tracer

    def of_another_text(self, submission: Submission) -> Subject:
        """A subject of another text in this one's process and in its place: see `Tracer.replace`."""
        tracer = self._tracer or self._start()
        if self._exploring is not None and self._exploring is not tracer:
            self._exploring.close()
        tracer.replace(submission)
        other = Subject(submission, self.assignment, lambda: tracer, is_brief=self._is_brief)
        other._tracer = tracer  # its own to close, also if nothing is asked of it
        other._runs.soundness = self._runs.soundness
        return other

    def close(self) -> None:
        """End the tracer's processes; a later call would start a new one."""
        for tracer in filter(None, (self._tracer, self._exploring)):
            tracer.close()
        self._tracer = self._exploring = None

    def program(self, this: CallSpec) -> Program:
        """The program of a call, which is not run."""
        self.forms.setdefault(this.signature, this.form)
        if this.signature not in self._programs:
            self._expected.pop(this.signature, None)
            self._programs[this.signature] = self._trace(this.form)
        return _or_raise(self._programs[this.signature])

    def _trace(self, form: Form) -> Program | TraceError:
        if len(self._deaths) >= Limit.DEATHS:
            return self._deaths[-1]
        try:
            return self._settled(self._loaded(), form)
        except TraceError as error:
            if error.cause in rules.DEADLY:  # a new process, so that the next call is not blamed for this one
                self._deaths.append(error)
                self.close()
            return error

    def _settled(self, tracer: Tracer, form: Form) -> Program:
        """That of a second call of its form, until one kind did twice the same: earlier results show."""
        program = self._traced(tracer, form)
        kind = (form.entry, form.wanted)
        if self._is_brief or self._steady.get(kind, False):
            return program
        again = self._traced(tracer, form)
        if kind not in self._steady:
            self._steady[kind] = again == program
            self._trace_ahead()
        return again

    def _traced(self, tracer: Tracer, form: Form) -> Program:
        found = folded(tracer.trace_form(form))
        return found if form.wanted else self._runs.contracts.program(form.entry, form.args, found)

    def _trace_ahead(self) -> None:
        """Asks for the expected calls that need no second look."""
        sure = {s: form for s, form in self._expected.items() if self._steady.get((form.entry, form.wanted), False)}
        if sure and self._tracer is not None:
            self._expected = {s: form for s, form in self._expected.items() if s not in sure}
            self._tracer.prefetch(sure.values())


def _or_raise(found: Program | TraceError) -> Program:
    if isinstance(found, TraceError):
        if GLUON in found.message:
            raise Unsupported("Gluon", found.line)
        raise found.with_traceback(None)
    return found


def _own(seen: Observation) -> tuple[Any, ...]:
    return seen.inputs[: len(seen.inputs) - bool(seen.wanted)]


def _same_part(seen: Observation, again: Observation) -> Observation:
    return again if seen.part is None else part_of(again, seen.part)


def _certain(seen: Inspection, text: str) -> Inspection:
    """What was seen, with the reason why a person must confirm it, where the source `text` could have made it up."""
    if seen.unavailable:
        raise Unsupported(f"torch.compile on this machine ({seen.unavailable})")
    if seen.doubtful:
        raise Unsupported("torch.compile of code that asks whether a tensor is on a GPU")
    means = reach(text)
    if means is None:
        return seen
    why = (
        f"line {means.line} has {means.what}. With that, a submission could change what torch answers, and this "
        "check rests on that answer alone"
    )
    return replace(seen, unconfirmed=why)


# --- a function of the submission, as a test calls it: submission.softmax is one --------------------------------------


class Entry:
    """The function `name` of a submission; all of its calls see the same GPU where they are `on_one_gpu`."""

    def __init__(self, subject: Subject, name: str, on_one_gpu: bool = False) -> None:
        self._subject = subject
        self._name = name
        self._on_one_gpu = on_one_gpu

    def on_one_gpu(self) -> Entry:
        """The same function for calls whose costs are compared: by default, some see a GPU with few multiprocessors."""
        return Entry(self._subject, self._name, on_one_gpu=True)

    def __repr__(self) -> str:
        return f"Entry({self._name!r})"

    def __call__(self, *args: Any) -> Observation:
        """The observation of a call with `args`: Input specs, tensors, numbers, None."""
        return self._subject.call(self._name, args, on_one_gpu=self._on_one_gpu)

    def gradient(
        self, *args: Any, upstream: Input, wanted: Sequence[int] = (0,), only: int | None = None
    ) -> Observation:
        """The observation of a call with `args` and of its backward pass, whose results are the gradients of the
        arguments at the positions `wanted`, in this order; or the `only` one that a check is about. `upstream` is the
        gradient of the call's result, in any layout, and the last argument of a reference. Raises Failure where
        `backward` gives None."""
        observation = self._subject.call(self._name, (*args, upstream.named(UPSTREAM)), tuple(wanted), self._on_one_gpu)
        return observation if only is None else part_of(observation, list(wanted).index(only))

    def traced(self, *args: Any, upstream: Input | None = None, wanted: Sequence[int] = ()) -> Program:
        """The program of a call with `args`, or of its backward pass as in `gradient`, of any size: it is not run."""
        given = args if upstream is None else (*args, upstream.named(UPSTREAM))
        return self._subject.traced(self._name, given, tuple(wanted), self._on_one_gpu)

    def timed(self, *args: Any, against: Callable[..., Any], expected: Callable[..., Any]) -> Timed:
        """A call with `args` (Input specs, see `strategies.normal`, numbers, None), whose values are drawn anew, timed
        on a card beside the torch function `against` and what torch.compile makes of it; what it returns is compared
        with the Reference that `expected` gives. Raises NeedsCard where there is no card: the check is pending."""
        return self._subject.time(self._name, args, against, expected)

    def inspected(self, *args: Any, wanted: Sequence[int] = (0,)) -> Inspection:
        """What torch makes of a model that calls this function, for arguments like `args`, and wants gradients of those
        at the positions `wanted`: see `judge.framework`."""
        return self._subject.inspect(self._name, args, tuple(wanted))


def part_of(observation: Observation, number: int) -> Observation:
    """The same observation, of its result at place `number` alone."""
    variants = tuple(part_of(variant, number) for variant in observation.variants)
    results = observation.results
    part = results.only(number) if isinstance(results, Results) else (results[number],)
    whole = observation.substitute
    substitute = None if whole is None else functools.partial(whole, part=number)
    return replace(observation, results=part, variants=variants, substitute=substitute, part=number)
