"""What a memory check proves beside its examples: for all sizes that the assignment promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gradekit.plugin.check_points import claims, worth

if TYPE_CHECKING:
    from gradekit.plugin.run_state import GradingRun

MOST_CLAIMS = 60
"""Claims that a report lists for one pass."""


def proofs(item: pytest.Item, run: GradingRun) -> dict[str, Any]:
    """The details of a check that claims clean memory and whose examples have passed; nothing for other checks: that
    every access lies inside its tensor says nothing of what is allocated.

    Raises:
        Failure: something is refuted, and the engine sees it fail.
    """
    subject = run.subject
    if subject is None or run.request.options.trivial is not None or not _wanted(run, item):
        return {}
    file = subject.assignment.folder / "domain.toml"
    if not file.is_file():
        return {}
    from gradekit import domain
    from gradekit.prove.prover import CHECK
    from gradekit.subject.entry_proofs import proved

    found, failures = {}, []
    for name, entry in domain.load(file).items():
        if any(form.entry == name and not form.wanted for form in subject.forms.values()):
            one = proved(subject, entry, CHECK)
            data = one.as_data()
            found[name] = data | {"claims": data["claims"][:MOST_CLAIMS]}
            failures += one.failures
    if failures:
        raise failures[0]
    return {"proofs": found} if found else {}


def _wanted(run: GradingRun, item: pytest.Item) -> bool:
    return claims(item, "assert_memory_clean") and worth(item).prove and run.profile.name != "quick"
