"""The part of a check after its covering design: calls for what the design has not seen of the submission."""

import contextlib
import functools
import itertools
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from gradekit.causes import Cause
from gradekit.engine.budget import OverBudget
from gradekit.exact.whole_numbers import first_difference
from gradekit.findings import Outcome
from gradekit.inputs.covering import Row
from gradekit.inputs.draws import Call, Draws
from gradekit.inputs.spec import Input
from gradekit.inspector.fits import LARGEST, does_not_fit, shared_beyond, stages_of
from gradekit.judge.by_text import keeps
from gradekit.judge.by_value import TO_FLOAT32
from gradekit.judge.failure import Failure
from gradekit.origins import Explored
from gradekit.plugin.check_results import verdict_of
from gradekit.plugin.design import Design, FurtherRun, drawn_by, telling
from gradekit.plugin.examples import Examples
from gradekit.plugin.float_edges import FloatEdges
from gradekit.plugin.profiles import Limit
from gradekit.program import Launch, Program, Scalar, View
from gradekit.sandbox import Form, TraceError, Unavailable
from gradekit.source.unfollowed import host_text
from gradekit.subject.call_spec import call_spec, to_arguments
from gradekit.subject.runs import SomePrograms
from gradekit.subject.subject import Subject
from gradekit.unseen.further import FurtherCall, Purpose, fits
from gradekit.unseen.host_branches import HostBranch, HostBranches, Path, TracedForm
from gradekit.unseen.host_inputs import HostInputs, beyond_half, far_apart, of_one_memory, one_size_apart, varied
from gradekit.unseen.kernel_branches import KernelText, kernel_text
from gradekit.unseen.kernel_inputs import PATH, KernelInputs, looked_up, off_by_rounding
from gradekit.unseen.layouts import repeated
from gradekit.unseen.loaded import at_edges
from gradekit.unseen.long_dimensions import Checks, LongCall, LongDimensions, PromisedSizes, first_of
from gradekit.unseen.search import constant_ways

MOST_HERE = {"BRANCH": 14, "BESIDE": 20, "VARIED": 18}  # further calls of one check, by their purpose

_TOO_LARGE = (Cause.BUDGET_EXCEEDED, Cause.OUT_OF_MEMORY, Cause.TIMEOUT)
"""Why a call that gradekit made up may fail by its size alone: it was not tried then, and costs nothing."""


_ASKS_LAYOUT = re.compile(r"is_contiguous\(|\.(stride|storage_offset)\([^)]*\) *([<>=!]=|[<>%])")


_ASKS_IDENTITY = re.compile(
    r"data_ptr\(\)(?! *%)|untyped_storage|\b_base\b|\bid\(|is_set_to|"
    r"([=(]|\b(if|and|or|not|return)) *\w+ is (not )?(?!None|True|False)\w+\b"
)
"""Which tensor, or whose memory, something is, but for questions of alignment."""


class FurtherInputs:
    """Makes further calls for all checks of one submission, and remembers what they have seen of it."""

    def __init__(self, subject: Subject, checks: Checks) -> None:
        self._subject = subject
        self._left, self._work, self._last = dict(MOST_HERE), 0, 0
        self._forms: dict[str, TracedForm] = {}
        self._usual, self._alone = set[Hashable](), list[tuple[FurtherCall, TracedForm]]()  # ways of examples; calls
        self._rows: list[tuple[Row, Call]] = []  # of the check's design
        self._check, self._text = "", host_text(subject.submission.text)
        self._constants = constant_ways(self._text.tree)
        self._asks = bool(_ASKS_LAYOUT.search(subject.submission.text))
        self._asks_identity = bool(_ASKS_IDENTITY.search(subject.submission.text))
        self._asks_wanted = "needs_input_grad" in subject.submission.text
        self._names = {name: [a.name for a in entry.arguments] for name, entry in subject.assignment.domain.items()}
        self._keeps = keeps(subject.submission.text)
        self._stretches, self._longest = LongDimensions(checks), LongestCalls(subject, checks)
        self._checks = checks
        self._first = first_of(checks, lambda check, draws: [kind_of(check, draws), *_far(draws), _laid_out(draws)])
        self._paths = dict[str, Path | None]()
        self._shared = dict[str, int]()

    def run(
        self, check: str, test: Any, design: Design | None, examples: Examples, fixtures: dict[str, Any],
        found: FurtherRun,
    ) -> None:  # fmt: skip
        """Runs further examples of a `check` that has passed so far, up to the first that fails; notes them in `found`.
        Where gradekit itself fails over one that it has made up, that one was not tried."""
        drawn = drawn_by(test)
        if drawn is None:
            return
        name, draws = drawn
        self._left, self._work, self._usual, self._alone = dict(MOST_HERE), 0, set(), []
        self._uncompared = set[str]()
        self._rows = [(one.row, one.given[name]) for one in (design.planned if design else ())]
        self._check, far = check, self._keeps or self._first.get(kind_of(check, draws)) == check
        self._host = HostInputs(HostBranches(self._explore, self._names, self._paths, by_layout=self._asks), far)
        self._kernels = KernelInputs(self._constants, far)
        for calls in (self._rounds(self._in_views(draws), found, name), self._long(draws, found, name)):
            with _noting(found):
                for call in calls:
                    self._run_one(call, name, examples, fixtures, found)
                    if examples.failed is not None:
                        return
        with _noting(found):
            self._see_kernels()
            shortage = self._longest.shortage(check, draws, self._traced(), self._host.branches.known_paths)
            found.shortage = shortage or self._rounded_indices(draws) or self._not_launched()
        with _noting(found):
            found.branches = self._seen_and_unseen(draws)
        found.branches |= {"untried": _told(found.untried)} if found.untried else {}

    def _run_one(
        self, call: FurtherCall, name: str, examples: Examples, fixtures: dict[str, Any], found: FurtherRun
    ) -> None:
        before, known = self._subject.work, set(self._subject.forms)
        with self._subject.within(call.most_work or 2 * Limit.FURTHER_WORK, call.in_part):
            examples.run_all([{name: call.call}], fixtures)
        self._last, self._too_much = self._subject.work - before, False
        error = examples.first_problem if examples.failed is not None else None
        if error is None:
            new = (form for form in self._traced() if form.key not in known)
            self._alone += [(call, form) for form in new if call.purpose is Purpose.BRANCH]
            return
        is_fault = verdict_of(error).outcome is Outcome.FAULT
        if is_fault:
            found.untried[call.line, f"a call for which {call.why}: the grader failed ({_named(error)})"] = None
        if is_fault or (getattr(error, "told", None) in _TOO_LARGE and "hint" not in getattr(error, "facts", {})):
            examples.forgive()
            self._too_much = True
            self._uncompared |= self._subject.forms.keys() - known

    def _rounds(self, draws: Draws, found: FurtherRun, name: str) -> Iterator[FurtherCall]:
        for turn in range(Limit.ROUNDS):
            before = len(found.ran)
            forms = self._traced()
            special = [] if turn else _listed(found, self._special, draws, forms)
            calls = _listed(found, self._host.further, draws, [*forms, *self._in_part(draws, forms)])
            self._usual |= set() if turn else {path.way for path in self._host.paths}
            self._see_kernels()
            calls = [*_listed(found, self._kernels.decided, draws, forms, self._host.paths), *calls]
            calls += _listed(found, self._kernels.padding_as_data, draws, self._host.paths)
            repeats = _listed(found, self._kernels.repeats, draws, self._host.paths)
            again = [] if turn else [*repeats, *_listed(found, self._kernels.begun, draws, forms)]
            again += [] if turn else _listed(found, at_edges, draws, forms, self._host.branches.path_of, self._texts_of)
            is_first = not turn and self._host.goes_far
            is_wide = not turn and self._first.get(_laid_out(draws)) == self._check
            again += _listed(found, off_by_rounding, draws, forms, self._explore, self._texts_of) if is_wide else []
            again += _listed(found, repeated, draws, forms) if is_wide else []
            again += _listed(found, FloatEdges(self._subject, draws).calls, forms) if is_first else []
            calls += _listed(found, self._kernels.further, draws, forms, self._host.paths)
            yield from self._afforded([*special, *calls, *again], found, name, Limit.ROUNDS - 1 - turn)
            if turn == Limit.ROUNDS - 1 or len(found.ran) == before:
                last = _listed(found, self._host.last, draws)
                return (yield from self._afforded([*self._varied(draws), *last], found, name, 0))

    def _special(self, draws: Draws, forms: Sequence[TracedForm]) -> Iterator[FurtherCall]:
        """Those of the first round alone, whatever decides."""
        yield from itertools.islice(looked_up(draws, forms, self._text.keys), Limit.LOOKED_UP)
        fitting = [form for form in forms if fits(draws, form)]
        for usual in [form for form in fitting if form.elements][:1]:
            yield from one_size_apart(draws, usual) if self._keeps else ()
            yield from of_one_memory(draws, usual) if self._asks_identity else ()
            yield from far_apart(draws, usual, [k[-1] for k in _far(draws) if self._first.get(k) == self._check])
        half = next((form for form in fitting if draws.upstream and self._subject.keeps_half(form.key)), None)
        yield from beyond_half(draws, half) if half is not None else ()

    def _texts_of(self, form: TracedForm) -> list[KernelText]:
        program = self._subject.program_of(form.key)
        return [kernel_text(one.name, one.unaligned, PATH) for one in program.kernels.values()] if program else []

    def _in_part(self, draws: Draws, forms: Sequence[TracedForm]) -> Iterator[TracedForm]:
        """The largest call, with fewer of its gradients asked for: where host code asks which, it may decide then what
        it does not for all."""
        asked = [form for form in forms if fits(draws, form) and form.wanted and self._asks_wanted]
        for form in [max(asked, key=lambda one: (one.elements, one.key))] if asked else ():
            for count in range(1, len(form.wanted)):
                for few in itertools.combinations(form.wanted, count):
                    yield replace(form, key=f"{form.key} {few}", wanted=few)

    def _in_views(self, draws: Draws) -> Draws:
        """Where host code asks how tensors lie, what is drawn with the layouts of all checks of the entry."""
        own = draws.entry.name, draws.upstream
        alike = [one for _, one in self._checks if (one.entry.name, one.upstream) == own]
        wide = {name: [way for one in [draws, *alike] for way in dict(one.layouts)[name]] for name, _ in draws.layouts}
        layouts = tuple((name, tuple(dict.fromkeys(ways))) for name, ways in wide.items())
        return replace(draws, layouts=layouts) if self._asks else draws

    def _varied(self, draws: Draws) -> Iterator[FurtherCall]:
        """Calls for each way through the submission that further calls alone have shown, with what else the check is
        about, and for each way of a comparison of examples with what none of these has had: one for each in turn."""
        shown: dict[Hashable, Iterator[FurtherCall]] = {}
        design = draws.design()
        rows = [design[place] for place in telling(design, Limit.VARIED)]
        for call, form in sorted(self._alone, key=lambda one: " == " not in one[0].why):
            path = self._host.branches.path_of(form) if fits(draws, form) and form.elements else None
            if path is not None and path.way not in self._usual:
                shown.setdefault(path.way, varied(draws, call, path, form, rows))
        of_sizes = {level for row in design for level in row.items() if level[0].startswith(("rank", "size "))}
        for (branch, way), path, seen in self._levels(draws) if self._host.goes_far else ():
            rows = [design[place] for place in telling(design, Limit.VARIED, seen | of_sizes)]
            shown[branch, way] = varied(draws, FurtherCall((), branch.says(way), branch.line), path, path.form, rows)
        each = (call for turn in itertools.zip_longest(*shown.values()) for call in turn if call is not None)
        return itertools.islice(each, Limit.VARIED)

    def _levels(self, draws: Draws) -> list[tuple[tuple[HostBranch, bool], Path, set[tuple[str, Hashable]]]]:
        """The ways of comparisons that went both in rows of the check's design, each with a path and the levels that
        these rows have: those with the fewest first."""
        forms = {_lies(form.views): form for form in self._traced() if fits(draws, form) and form.elements}
        found: dict[tuple[HostBranch, bool], tuple[Path, set[tuple[str, Hashable]]]] = {}
        for row, call in self._rows:
            form = forms.get(_lies([arg for arg in call if isinstance(arg, Input)]))
            if form is not None and (path := self._host.branches.path_of(form)):
                for condition, branch in path.steps:
                    found.setdefault((branch, condition.held), (path, set()))[1].update(row.items())
        both = ((way, *told) for way, told in found.items() if (way[0], not way[1]) in found)
        return sorted(both, key=lambda one: len(one[2]))

    def _afforded(self, calls: Iterable[FurtherCall], found: FurtherRun, name: str, kept: int) -> Iterator[FurtherCall]:
        """Those that have not run yet and may show something, as far as the check's budgets go; so many are kept for
        rounds to come: what stands behind a comparison is seen after it."""
        for call in calls:
            text = repr({name: call.call})
            same = map(_sized, self._traced() if call.of_sizes else ())
            if text in found.ran or _sized(TracedForm("", "", to_arguments(call.call))) in same:
                continue
            self._see_kernels()
            if not call.is_wanted():
                continue
            own = call.purpose.name
            if self._left[own] > kept and self._work < Limit.FURTHER_WORK:
                self._left[own] -= 1
                found.ran[text] = call
                call.tried()
                yield call
                self._work += self._last

    def _see_kernels(self) -> None:
        self._kernels.see(self._subject.branches.kernels, self._subject.branches.ways)

    def _long(self, draws: Draws, found: FurtherRun, name: str) -> Iterator[FurtherCall]:
        forms, work = self._traced(), 0
        for stretch in self._stretches.begun(self._check, draws, forms, bool(self._kernels.few_bits)):
            while work < Limit.FURTHER_WORK and (call := stretch.next()):
                self._last, self._too_much = 0, False
                if repr({name: call.call}) not in found.ran:
                    found.ran[repr({name: call.call})] = call
                    found.long += 1
                    yield call
                    work += self._last
                stretch.spent(None if self._too_much else self._last)

    def _rounded_indices(self, draws: Draws) -> Failure | None:
        calls = self._stretches.quotients(self._check, draws, self._traced()) if self._kernels.divides_in_floats else ()
        return next(filter(None, (rounded_indices(self._subject, draws.entry.name, call) for call in calls)), None)

    def _not_launched(self) -> Failure | None:
        """The failure of the first call with a kernel that no card launches, for want of shared memory."""
        traced = ((self._subject.program_of(form.key), form) for form in self._traced())
        each = (not_launched(program, form, self._shared) for program, form in traced if program is not None)
        return next(filter(None, each), None)

    def _traced(self) -> list[TracedForm]:
        """The check's calls whose results were compared, as data; each is one object for all checks."""
        made = self._subject.forms
        for key in made.keys() - self._forms.keys():
            f = made[key]
            self._forms[key] = TracedForm(key, f.entry, f.args, f.wanted, f.upstream)
        return [self._forms[key] for key in made if key not in self._uncompared]

    def _seen_and_unseen(self, draws: Draws) -> dict[str, Any]:
        """The check's part of the ledger: which ways of each line its calls went, and which none of them has."""
        ways: dict[int | None, dict[str, bool]] = {}
        for line, what, seen in [*self._host.decisions(draws), *self._kernels.decisions()]:
            ways.setdefault(line, {})[what] = ways.get(line, {}).get(what, False) or seen
        few = ((line, f"numbers may need more than {n} bits") for line, n in self._kernels.few_bits.items())
        data: dict[str, list[dict[str, Any]]] = {
            "decisions": [
                {"line": line, "seen": [what for what in own if own[what]], "unseen": [w for w in own if not own[w]]}
                for line, own in sorted(ways.items(), key=lambda one: one[0] or 0)
            ],
            "unfollowed": _told([*self._text.unfollowed(), *sorted(self._host.branches.opaque), *few]),
            "asked": _told(sorted(self._host.branches.asked)),
        }
        return {name: told for name, told in data.items() if told}

    def _explore(self, form: TracedForm) -> Explored | None:
        try:
            return self._subject.explore(Form(form.entry, form.args, form.wanted, form.upstream))
        except TraceError:
            return None


@contextlib.contextmanager
def _noting(found: FurtherRun) -> Iterator[None]:
    """Notes an error of gradekit's own over what it makes up of a submission: the check and its other calls go on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        found.untried[None, f"further calls could not be worked out, by no fault of yours ({_named(error)})"] = None


def _listed(found: FurtherRun, make: Callable[..., Iterable[FurtherCall]], *arguments: Any) -> list[FurtherCall]:
    """The calls that `make` gives; those up to an error of its own."""
    calls: list[FurtherCall] = []
    with _noting(found):
        calls.extend(make(*arguments))
    return calls


def _told(named: Iterable[tuple[int | None, str]]) -> list[dict[str, Any]]:
    return [{"line": line, "what": what} for line, what in dict.fromkeys(named)]


def _far(draws: Draws) -> list[tuple[str, bool, str]]:
    """The tensors whose elements may lie far apart, of a check that is about layouts; equal for those of an entry."""
    far = (one.name for one in draws.tensors if one.far and len(dict(draws.layouts)[one.name]) > 1)
    return [(draws.entry.name, draws.upstream, name) for name in far]


def _laid_out(draws: Draws) -> tuple[str, bool, bool]:
    """Equal for checks of an entry whose calls lie in several ways, or for those that do not."""
    return draws.entry.name, draws.upstream, any(len(ways) > 1 for _, ways in draws.layouts)


def _sized(form: TracedForm) -> list[Any]:
    """All of a call that may decide which way it goes, but for the values of tensors and fractions."""
    told = (*form.args, *filter(None, [form.upstream]))
    return [type(arg.value) if isinstance(arg, Scalar) and isinstance(arg.value, float) else arg for arg in told]


def _lies(tensors: Sequence[View | Input]) -> Hashable:
    return tuple((one.shape, one.stride, one.offset) for one in tensors)


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}".rstrip(": ")


def kind_of(check: str, draws: Draws) -> Hashable:
    """Equal for checks whose calls differ in sizes alone: the first of these goes beyond the sizes that it lists."""
    own = check.partition("[")[0 if draws.upstream else 2]  # of gradients, each is another question
    return own, draws.entry.name, replace(draws, sizes=(), at_most=0, free=frozenset())


def rounded_indices(subject: Subject, entry: str, call: Call) -> Failure | None:
    """The failure of a call some of whose programs compute indices in float32, where that makes a result wrong."""
    program = subject.program_apart(call_spec(entry, call).form)
    try:
        some = SomePrograms.of(program, 0)
    except OverBudget:
        return None
    tensors = [arg for arg in call if isinstance(arg, Input)]
    values = [tensor.tensor() for tensor in tensors]
    found = first_difference(program, values, subject.assignment.allow, {some.launch: some.ids})
    if found is None:
        return None
    element, line = found
    failure = Failure(
        Cause.WRONG_VALUES,
        f"Line {line} {TO_FLOAT32} "
        f"At shape {list(tensors[0].shape)}, element {element:,} of the result is wrong by that.",
        line=line,
    )
    failure.repeat = functools.partial(_raise_again, functools.partial(rounded_indices, entry=entry, call=call))
    return failure


def not_launched(program: Program, form: TracedForm, known: dict[str, int]) -> Failure | None:
    """The failure of a call whose program launches a kernel for which no block has shared memory enough. `known` says
    of kernels how much these need, where it is too much. Autotuners leave such configurations out by themselves."""
    for launch in (step for step in program.steps if isinstance(step, Launch)):
        kernel = program.kernels[launch.kernel]
        if launch.kernel not in known:
            known[launch.kernel] = 0  # also where this machine cannot compile it: it is not asked again
            with contextlib.suppress(Unavailable):
                known[launch.kernel] = shared_beyond(kernel)
        if known[launch.kernel]:
            dtypes = ", ".join(dict.fromkeys(view.dtype for view in form.views))
            said = does_not_fit(f"{kernel.name} ({dtypes})", LARGEST, known[launch.kernel], stages_of(kernel))
            failure = Failure(Cause.OUT_OF_RESOURCES, said, line=launch.source.line if launch.source else None)
            failure.repeat = functools.partial(_raise_again, functools.partial(_launched_again, form=form))
            return failure
    return None


def _launched_again(subject: Subject, form: TracedForm) -> Failure | None:
    return not_launched(subject.program_apart(Form(form.entry, form.args, form.wanted, form.upstream)), form, {})


# --- what goes wrong in the longest calls that an entry promises, which are traced and not run ------------------------


TOO_LARGE = "invalid argument (a grid of"  # what Triton says of a grid that CUDA does not launch


def refused(error: TraceError | Failure) -> bool:
    """Whether a card does not launch a kernel with such a grid, or Triton does not compile it for such sizes."""
    return error.cause is Cause.COMPILATION_ERROR or TOO_LARGE in error.message


class LongestCalls:
    """Looks at each of them in one of the checks."""

    def __init__(self, subject: Subject, checks: Checks) -> None:
        self._subject, self._promised = subject, PromisedSizes(checks)
        self._is_steady = dict[Hashable, bool]()

    def shortage(self, check: str, draws: Draws, forms: Sequence[TracedForm], paths: Sequence[Path]) -> Failure | None:
        """What the first of them that leaves elements out, or cannot be launched, does wrong."""
        for call in self._promised.calls(check, draws, forms, paths):
            failure = shortage_of(self._subject, call) if self._steady(call) else None
            if failure is None or call.turned and shortage_of(self._subject, call.upright):
                continue  # or another check tells of it
            if not refused(failure) or call.turned or self._promised.tells_of_launches(check, draws, call.form):
                return failure
        return None

    def _steady(self, call: LongCall) -> bool:
        """Whether host code executes as many instructions for long dimensions as for short ones."""
        key = call.form.entry, call.name, tuple(call.beside.items())
        if key not in self._is_steady:
            counts = itertools.pairwise(self._subject.instructions(one.entry, one.args) for one in call.growing())
            try:
                self._is_steady[key] = all(not less or more <= Limit.GOES_OVER * less for less, more in counts)
            except TraceError:
                self._is_steady[key] = False
        return self._is_steady[key]


def shortage_of(subject: Subject, call: LongCall) -> Failure | None:
    """What a call leaves out, if anything; or that it asks for a grid that no card has, or for too large a tile."""
    errors: list[TraceError] = []

    @functools.cache
    def ask(form: TracedForm) -> Program | None:
        try:
            return subject.program_apart(Form(form.entry, form.args, form.wanted, form.upstream, is_exact=False))
        except TraceError as error:
            errors.extend([error] if form is call.form and refused(error) else [])
            return None

    short = call.shortage(ask)
    if short is not None:
        cause = Cause.UNWRITTEN_OUTPUT if short.stored else Cause.WRONG_VALUES
        failure = Failure(cause, call.description(short), line=short.tally.line)
    elif (line := call.outgrown(ask)) is not None:
        message = (
            f"With {call.told}, the counter of the loop in line {line} goes beyond 2,147,483,647, where int32 ends."
        )
        failure = Failure(Cause.OVERFLOW, message, line=line)
    elif errors:
        said = errors[0].message.rstrip(".")
        message = f"With {call.told}: {said}. Sizes up to these are promised."
        if TOO_LARGE in said:
            message = f"With {call.told}: {said}. A card launches at most 2,147,483,647 by 65,535 by 65,535 programs."
        failure = Failure(errors[0].cause, message, line=errors[0].line)
    else:
        return None
    failure.repeat = functools.partial(_raise_again, functools.partial(shortage_of, call=call))
    return failure


def _raise_again(found: Callable[[Subject], Failure | None], other: Subject) -> None:
    if failure := found(other):
        raise failure
