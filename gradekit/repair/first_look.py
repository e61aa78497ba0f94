"""Mends that no rule names: changes of a text that seem right at a first look (see gradekit.repair) at the failing
call, at calls of other examples of its check, and at calls of other checks."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gradekit.interpreter.shown_call import ShownCall
from gradekit.program import View
from gradekit.repair.clues import behind_copies, stored_through
from gradekit.repair.effort import MORE_LOADS
from gradekit.repair.failed_check import Example
from gradekit.repair.mend import Mend
from gradekit.repair.mend_tries import MendTries
from gradekit.repair.operators.changes import LIKELY, Change
from gradekit.repair.other_checks import confirmed
from gradekit.repair.screen import Screen
from gradekit.repair.shown_calls import failing, not_worse, passing, place_of_wrong, shown_by, wrong_in_memory
from gradekit.repair.survivor_mends import halves_of, is_against_names, mend_of, mends_each, mends_of, mends_of_host
from gradekit.repair.unexpected import survived
from gradekit.repair.work import Limit, Rank, Work
from gradekit.source.draft import settled_lines
from gradekit.submission.parsed_source import ParsedSource


class FirstLook:
    """The first look at all changes of the text that `tries` are about, within a budget."""

    def __init__(self, tries: MendTries, work: Work) -> None:
        self._tries, self._check, self._work = tries, tries.check, work
        self._ran: dict[tuple[Example, int | None], ShownCall | None] = {}

    def mends(self) -> list[Mend]:
        """Those that seem right at all of these calls, in the order in which they are to be tried; what makes the
        failing call right in part is kept with the tries."""
        tries, check = self._tries, self._check
        tries.in_part = tries.beside = []
        screen, is_compared = tries.texts.screen(tries.text, self._work), check.error.comparison is not None
        if screen is None:
            return []
        shown = failing(check.error, check.call) if is_compared else wrong_in_memory(check.call)
        if shown is None:
            known = None if is_compared else passing(check.call, 0)
            return self._of_prior(screen, known, only_idle=True) if known is not None else []
        if screen.replayed(shown) is None:
            return self._of_prior(screen, shown)
        large = self._telling()
        rest = [one for one in check.others if one not in large and one.elements <= Limit.WALKED_ELEMENTS]
        larger = sorted((one for one in rest if one.elements > self._elements), key=lambda one: one.elements)
        calls = [shown, *self._shown(large)]
        compared = (one for one in tries.held() if one.compares)
        tells_little = lambda one: (one.elements < Limit.FEW_ELEMENTS, not one.is_strided, one.elements)
        held = sorted(compared, key=tells_little)[: Limit.SHOWN]
        others = (not_worse(ran) for one in held if (ran := self._run_once(one, None)) is not None)
        small = (one for one in rest if one not in larger)  # which tell little that the failing call does not
        more, again = itertools.tee(itertools.chain(self._shown(larger), others, self._shown(small)))
        source, clues = screen.draft.source, tries.clues
        is_confirmed = lambda change: self._confirmed(change, source)
        is_suspect = lambda change: self._is_suspect(change, source)
        traits = check.example.traits if check.example is not None else frozenset()
        in_common = lambda one: len(one.traits & traits)
        of_each = {one.check: one for one in sorted((one for one in tries.held() if one.compares), key=in_common)}
        settled = self._settled(screen, sorted(of_each.values(), key=in_common)[-Limit.OF_CHECKS :])
        kernels = clues.kernels, clues.others
        found = screen.survivors(calls, *kernels, more, clues.astray, is_confirmed, settled, is_suspect)
        likeliest = {one: mend for one in found[: 2 * Limit.SURVIVORS] if (mend := mend_of(one, source)) is not None}
        found = [one for one in found if one not in likeliest or not tries.is_by_chance(likeliest[one])]
        if len(found) > 1:
            few = [*likeliest][: Limit.SURVIVORS]
            found = [one for one in found if one not in few or not is_suspect(one)] or found
            found = self._with_fewest_loads([one for one in few if one in found], likeliest, found)
        agreeing = [one for one in found if not is_against_names(one, screen.draft)]
        found = agreeing or found
        if any(change.kind in LIKELY for change in agreeing):
            tries.in_part = halves_of(screen.in_part(), source)
            return mends_of(found, source)
        self._work.lend_to_host()
        host = tries.texts.host_screen(tries.text, screen, self._work)
        on_host = host.survivors(shown, itertools.chain(calls[1:], again))
        tries.in_part = halves_of([*host.in_part, *screen.in_part()], source)
        on_host = [one for one in on_host if not is_against_names(one, screen.draft)] or on_host
        likelier = not agreeing or any(change.kind < min(one.kind for one in found) for change in on_host)
        copies = [replace(mend, rank=Rank.OF_SEVERAL) for mend in mends_each(host.copies, source)]
        host_mends, in_kernels = mends_of_host(on_host, source), mends_of(found, source)
        if not agreeing:
            in_kernels = [replace(one, rank=Rank.OF_SEVERAL) for one in in_kernels]
        mends, tries.beside = [*(host_mends if likelier else ()), *in_kernels, *copies], host_mends
        comparison = check.error.comparison
        follows = comparison is not None and comparison.reference.key is None  # what is right may follow from results
        return self._of_prior(screen, shown) if follows and not mends else mends

    def _with_fewest_loads(
        self, few: Sequence[Change], likeliest: Mapping[Change, Mend], found: Sequence[Change]
    ) -> list[Change]:
        """Of changes that all seem right, those with which the fewest examples are wrong, and that do least: one may be
        right as a kernel goes over all there is. All the likeliest are compared where a few are unlike."""
        loads = lambda one: self._tries.loads(likeliest[one].applied(self._tries.text))
        is_more = lambda one, least: one[0] > least[0] or one[1] > MORE_LOADS * least[1]
        is_unlike = any(is_more(loads(one), min(map(loads, few))) for one in few)
        each = {one: loads(one) for one in (likeliest if is_unlike else ()) if one in found}
        return [one for one in found if one not in each or not is_more(each[one], min(each.values()))]

    def _of_prior(self, screen: Screen, shown: ShownCall, only_idle: bool = False) -> list[Mend]:
        """The likeliest changes, where nothing can be seen without a run: of random numbers, say."""
        found, tries = screen.of_prior(shown, self._tries.clues.kernels, only_idle), self._tries
        host = [] if only_idle else tries.texts.host_screen(tries.text, screen, self._work).of_prior(shown)
        in_turn = (one for pair in itertools.zip_longest(found, host) for one in pair if one is not None)
        return mends_each([*in_turn][: Limit.IDLE], screen.draft.source)

    def _settled(self, screen: Screen, examples: Sequence[Example]) -> dict[str, set[int]]:
        """The lines of each kernel that no mistake can be in, where some examples show that a result is right which
        depends on them."""
        draft, wrong, right, other = screen.draft, self._tries.clues.wrong, set[str](), set[str]()
        if not wrong or sum(len(kernel.stored) for kernel in draft.kernels) < 2:
            return {}
        for shown in (one for example in examples if (one := self._run_once(example, None)) is not None):
            compared = [shown.program.results[place] for place in shown.compared or ()]
            results = [view.storage for view in compared if isinstance(view, View)]
            through = stored_through(shown.program, self._tries.text, behind_copies(shown.program, results))
            (right if shown.is_right(shown.results) else other).update(through)
        return settled_lines(draft, wrong, right - other)

    def _telling(self) -> list[Example]:
        """The largest example that failed, of those that cost little: in a call of few elements much seems right."""
        found = (one for one in self._check.failed if one != self._check.example)
        little = [one for one in found if self._elements < one.elements <= Limit.TELLING_ELEMENTS]
        return sorted(little, key=lambda one: one.elements)[-1:]

    @property
    def _elements(self) -> int:
        """Of the inputs of the failing example; 0 where they are not known."""
        return self._check.example.elements if self._check.example is not None else 0

    def _shown(self, wanted: Iterable[Example]) -> Iterator[ShownCall]:
        """The calls of examples, as the submission is."""
        place = place_of_wrong(self._check.error, self._check.call)
        yield from (shown for one in wanted if (shown := self._run_once(one, place)) is not None)

    def _run_once(self, example: Example, compared: int | None) -> ShownCall | None:
        """The last call of an example with the text as it is; the result of the number `compared` is looked at."""
        if (example, compared) not in self._ran:
            texts, text = self._tries.texts, self._tries.text
            subject = texts.subject if text == texts.submission.text else texts.subject_of(text)
            self._ran[example, compared] = shown_by(example, subject, compared)
        return self._ran[example, compared]

    def _is_suspect(self, change: Change, source: ParsedSource) -> bool:
        mend = mend_of(change, source)
        return mend is not None and self._tries.is_no_repair(mend)

    def _confirmed(self, change: Change, source: ParsedSource) -> int | None:
        """How many other examples are right with a change, by walks; see `other_checks.confirmed`."""
        mend, tries = mend_of(change, source), self._tries
        walked = tries.walked_examples(mend.applied(tries.text)) if mend is not None else None
        if walked is None or self._check.example is None:
            return None
        return confirmed(walked, self._check.others, tries.held(), tries.texts.before)


def screened(tries: MendTries, work: Work) -> list[Mend]:
    """Mends that seem right at a first look; none where the look itself fails. `tries.in_part` has then those that
    make the failing call right in part."""
    with survived("The first look at all changes"):
        by_values = tries.by_values() or tries
        found = FirstLook(by_values, work).mends()
        tries.in_part, tries.beside = by_values.in_part, by_values.beside
        return found
    return []
