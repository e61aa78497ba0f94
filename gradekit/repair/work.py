"""What looking for the mistakes of one submission may use: one budget in the engine's units (see engine.budget), of
which each step has its share."""

from __future__ import annotations


class Limit:
    """How much is tried. Work is in the engine's units, about a nanosecond each; elements are those of an example's
    inputs where nothing else is said."""

    # what all checks of a submission with one mistake may use, and the shares of it
    WORK = 2_500_000_000
    TRIED, IN_KERNELS = 0.65, 0.3  # texts that are run, changes of kernels that are walked; the rest is for host code
    AT_LEAST = 0.6  # for the texts in which one of two mistakes is mended, where less of the whole is left
    FOR_ONE_CHECK = 0.75  # of what is left, but at least two tries
    OF_A_CALL, OF_A_CALL_ON_HOST = 0.05, 0.1  # of what is left: of a call that takes more, few changes could be tried
    KEPT_FOR_OTHER_CALLS = 0.2  # of what is left: to try on other calls what makes the failing one right
    WORK_AFTER_ONE_IN_PART = 300_000_000  # for a mend that holds in all checks, where one that does in some is known

    # the work of single steps
    LOADED, LAUNCHED = 20_000_000, 10_000_000  # a process loads a text, launches a kernel
    A_CHARACTER, A_CHARACTER_COMPILED = 5_000, 3_300  # of a text; of TTIR, all of which Triton has to make
    REFUTED = 10_000_000  # a walk that shows a text to be wrong
    BATCH = 200_000_000  # the changes that are screened at a time, about
    WALK = 5_000_000  # one call: a larger one costs as much to walk as to trace and run

    # elements
    WALKED_ELEMENTS = 20_000  # of an example on which changes are looked at
    EXAM_ELEMENTS = 1 << 18  # of one that an edit must make right before it is told
    TELLING_ELEMENTS = 4_000  # of one that has failed and on which all changes are looked at
    FEW_ELEMENTS = 64  # with fewer, much seems right
    RESULT_ELEMENTS = 1 << 16  # of all results of a call that is screened
    COUNTED_ELEMENTS = 1 << 12  # of a result of which it is counted how many are wrong

    # examples
    SHOWN = 12  # of other checks, on which changes are looked at
    OF_CHECKS = 8  # one of each, which may show that lines are right
    FROM_EACH = 3  # of a check's examples: the largest, then those whose inputs are least like those taken before
    OF_MEMORY = 1  # of a check of memory: every other example that is run is watched, too
    LARGEST = 3  # examples in which an edit is looked at for what kernels do: loop steps, loads and stores
    FURTHER = 20  # walked with a mend before it is told, beside those that it was found with
    RUN_FIRST = 2  # traced and run before others of their check, where walks find those right
    RUN_FURTHER, RUN_OF_OTHERS = 4, 8  # of further ones and of other checks: run where walks do not find them right
    LEAST_WALKED = 3  # of which it must be known whether they are right
    IN_VAIN = 3  # in a row that cannot be walked: then no other is

    # mends and changes
    IDLE = 8  # that put a name to use, where no look can tell which of them is right
    INSERTIONS = 24  # statements in one function: each is evaluated alone
    HELD = 400  # that make the failing call right, of the likelier kinds, tried on other calls
    FEW = 2  # of which it is asked whether they are confirmed, rather than for further calls
    LEFT_WRONG = 0.5  # the share of the wrong elements that one of two mends may leave wrong
    OF_AN_IDIOM = 3  # at one place, unless the idiom says otherwise
    OF_REFUSED = 16  # of a kernel that Triton does not compile, or that does not come to its end
    BEFORE_SCREENING = 6  # of those that rules put first, before what screening gives: rules say best what is wrong
    BEFORE_VAGUE = 16  # of rules, before one of screening that can only say where something is wrong
    HALVES, LIKELY_HALVES = 3, 24  # taken for one of two mistakes; walked, to see which of them help most
    SURVIVORS, SURVIVORS_IN_PART = 4, 24  # of screening: traced and run; given, of those that help in part
    ALIKE_ON_A_LINE = 4  # of one line that make all calls right, of which the likeliest is named
    OTHERS = 0.5  # that may do as well, for each change that puts one name to something
    LINES = 3  # on which changes stand of which one is told

    # text
    NEAR, CLOSE = 4, 1  # lines from a name to another easily taken for it; to where one is used that is likely to lack
    BETWEEN = 3  # lines from one statement to the next one that is like it
    NAMES_OF_A_PART = 3  # that a line shares, at least, with one that has all of its names and more
    SHORT = 3  # digits of a number that may stand by chance both here and in the handout
    SMALL = 0.01  # a number of the handout below this is no factor, and keeps a divisor from 0
    SENTENCE_TEXT, CHANGE_TEXT = 90, 60  # characters of an expression that are shown


class Rank:
    """The ranks of mends: the lower, the sooner they are tried."""

    SPECIFIC = 5  # up to here, made for what a text shows: a name that nothing uses
    SCREENED = 6  # by screening; told in the words of a rule that does the same and has no higher rank
    OF_SEVERAL = 7  # one of several by which a line could be made right: no rule may say which
    LIKELIEST = 9  # up to here, tried before a look: others, as those of grids, may cost much and help seldom
    BEFORE_VAGUE = 12  # up to here, tried before a mend that can only say where something is wrong
    ELSEWHERE = 4  # added in a kernel that did not write the wrong result
    SOONER = 7  # taken off a mend of strides where an input is strided: an example without strides was right
    LATER = 40  # added where the evidence speaks for other families
    LATER_IF_SPECIFIC = 12  # added then to specific ones, and to those of memory, of which there are few


class Turn:
    """When changes are tried, from those of the first turn on."""

    IDLE = -1  # the use of a name that nothing uses: before all others, and alone where one is right
    COMBINED = 3  # names put to all of a formula; to a part of one, and to what is loaded, they come later
    LAST = 5  # when nothing else was found
    # in host code: what brings in something, where nothing else was right; copies of views
    HOST_LATER, HOST_LAST = 1, 2


class Share:
    """A part of the budget: `most` is what it may use, and `left` what is left of it, less than 0 where the last step
    took more."""

    def __init__(self, most: int) -> None:
        self.most = self.left = most

    def spend(self, work: int) -> None:
        """Counts what a step took."""
        self.left -= work


class Work:
    """The budget for one text of a submission, and for those in which one of two mistakes is mended."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most = Limit.WORK if most is None else most
        self.tried, self.in_kernels = Share(int(Limit.TRIED * most)), Share(int(Limit.IN_KERNELS * most))
        self.on_host = Share(most - self.tried.most - self.in_kernels.most)
        self._seconds: list[Work] = []

    def of_a_second(self) -> Work:
        """A budget for one more text, whose use counts as this one's."""
        least = int(Limit.AT_LEAST * self.most) - sum(second.used for second in self._seconds)
        self._seconds.append(second := Work(max(self.most - self.used, least, 0)))
        return second

    def lend_to_host(self) -> None:
        """Half of what a look at kernels has left, for one at host code."""
        half = max(self.in_kernels.left, 0) // 2
        self.in_kernels.spend(half)
        self.on_host.spend(-half)

    @property
    def used(self) -> int:
        """What has been used so far."""
        shares = self.tried, self.in_kernels, self.on_host
        return sum(share.most - share.left for share in shares) + sum(second.used for second in self._seconds)
