"""How hard a run looks, and Hypothesis's settings while it does: the same examples
for everybody, and no traces left."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, settings

from gradekit.compat.hypothesis import home, no_constants_of_modules


@dataclass(frozen=True)
class Profile:
    """How hard a run looks: all limits count examples, so that a slow machine looks as hard as a fast one.

    A check with a covering design runs its rows, which cover all combinations of `strength` levels, and then `drawn`
    examples of Hypothesis's; another runs `examples` unless it says its own number. `at_most` and `at_least` bound
    both. After a failure, `shrinks` more are tried to find a smaller one. `on_card` of a check's examples are run on a
    card too, where there is one: each may have kernels of its own to compile.
    """

    name: str
    examples: int
    drawn: int
    strength: int = 2
    shrinks: int = 200
    at_most: int = 1_000_000
    at_least: int = 1
    on_card: int = 8


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("quick", examples=10, drawn=0, shrinks=60, at_most=10, on_card=2),
        Profile("default", examples=40, drawn=3),
        Profile("thorough", examples=1000, drawn=1000, strength=3, shrinks=1000, at_least=1000, on_card=1000),
    )
}


@contextlib.contextmanager
def hypothesis_profile(profile: Profile) -> Iterator[None]:
    """While open, tests that say nothing else run under `profile`; Hypothesis keeps no database and sets no deadline.

    Health checks are off: they warn the author of a test, and would here fail a student. What Hypothesis would cache
    in the current folder, which is the student's, goes to a folder that is removed.
    """
    before, name = settings.get_current_profile_name(), f"gradekit-{profile.name}"
    settings.register_profile(
        name,
        max_examples=profile.examples,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink),
    )
    settings.load_profile(name)
    with tempfile.TemporaryDirectory(prefix="gradekit-") as folder, home(folder), no_constants_of_modules():
        try:
            yield
        finally:
            settings.load_profile(before)
