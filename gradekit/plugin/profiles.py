"""How hard a run looks, and Hypothesis's settings while it does: equal examples for all, and no traces left."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, settings

from gradekit.compat.hypothesis import home, no_constants_of_modules


class Limit:
    """What a check does beside its examples: work in the engine's units, elements of an example's largest tensor."""

    # checks in other processes
    WORKER_SECONDS = 600.0  # for one check, longer than any takes: a process that does not answer is broken
    WORTH_A_WORKER = 200  # examples of a run for another process to pay: it begins by executing the submission
    BESIDE_DESIGN, PROOFS = 40, 100  # about what a check takes beside its design, in examples; what proofs take

    # calls for what examples have not seen
    ROUNDS = 5  # a new path may have comparisons of its own
    VARIED = 8  # calls that vary what further calls alone have shown
    LOOKED_UP = 4  # calls whose sizes stand in a table of the text
    FURTHER_WORK = 2_000_000_000  # of a check's further calls, for another to be made: one may take double
    EDGE_WORK, HALVINGS = 1_000_000_000, 48  # of a check, to find where comparisons of floats turn; of each number
    EDGE_ROW, SOME_TILES = 1 << 18, 1 << 12  # elements of a long row; those of it that are tiles before the others
    EDGE_FORMS, FAR_SIZES = 2, 1 << 11  # calls with the longest dimensions; times the check's largest
    GOES_OVER = 1.5  # times the instructions as a dimension grows: too long for the longest

    # what is tried beside examples
    USUAL_ELEMENTS = 2000  # of an example that shows most and costs little
    FAR_ELEMENTS = 1 << 16  # of a call with long rows that is tried with values far from those of examples
    FORMS = 6  # that one check tries
    RELATED_ELEMENTS, KEPT_ELEMENTS = 1 << 14, 1 << 18  # of calls made again for a relation; kept for anything
    KEPT_CALLS, CACHED_CHECKS = 64, 512  # of one check; whose examples are cached
    KEEPING = 12  # calls of one check that use memory from before them: they are made again before others of it
    TRIED, AGAIN = 4, 3  # calls looked at until one has another that belongs to it by a relation; calls made again
    LOOKED_AT_AGAIN, REPEATED = 6, 4  # calls whose result is looked at once more; how often the last is called
    HARDLY_ANY = 64  # elements of a call, in all: any two of its numbers may be alike
    CLAIMS = 60  # that a report lists for one pass
    OTHER_ELEMENTS = 100_000  # of all inputs of another example of the check that fails
    SEVERAL_DIMENSIONS = 3  # of which two may lie in memory as one, although the tensor is not contiguous

    # what is shown, and the process's memory
    SHOWN = 8  # of a tensor
    HANDING_ON = 5  # functions of the submission that hand on what the next one returns
    UNRETURNED_BYTES, MAPPED_BYTES = 256 << 20, 32 << 20  # at the heap's end; the largest block taken from the heap


@dataclass(frozen=True)
class Profile:
    """How hard a run looks: all limits count examples, so that a slow machine looks as hard as a fast one.

    A check with a covering design runs its rows, which cover all combinations of `strength` levels, and then `drawn`
    examples of Hypothesis's; another runs `examples` unless it says its own number. `at_most` and `at_least` bound
    both. After a failure, `shrinks` more are tried; `on_card` of a check's examples are run on a card too.
    """

    name: str
    examples: int
    drawn: int
    strength: int = 2
    shrinks: int = 200
    at_most: int = 1_000_000
    at_least: int = 1
    on_card: int = 8


PROFILES = {profile.name: profile for profile in (
    Profile("quick", examples=10, drawn=0, shrinks=60, at_most=10, on_card=2),
    Profile("default", examples=40, drawn=3),
    Profile("thorough", examples=1000, drawn=1000, strength=3, shrinks=1000, at_least=1000, on_card=1000),
)}  # fmt: skip


@contextlib.contextmanager
def hypothesis_profile(profile: Profile) -> Iterator[None]:
    """While open, tests that say nothing else run under `profile`; Hypothesis keeps no database and sets no deadline.
    Health checks are off: they warn the author of a test, and would here fail a student. What Hypothesis would cache in
    the current folder, which is the student's, goes to a folder that is removed."""
    before, name = settings.get_current_profile_name(), f"gradekit-{profile.name}"
    settings.register_profile(
        name, max_examples=profile.examples, database=None, deadline=None, report_multiple_bugs=False, print_blob=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink),
    )  # fmt: skip
    settings.load_profile(name)
    with tempfile.TemporaryDirectory(prefix="gradekit-") as folder, home(folder), no_constants_of_modules():
        try:
            yield
        finally:
            settings.load_profile(before)
