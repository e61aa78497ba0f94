"""A kernel that nothing launches, where something is missing of a result."""

from __future__ import annotations

from gradekit.causes import Cause
from gradekit.judge.evidence import Diagnosis
from gradekit.repair.mend import Clues
from gradekit.source.draft import draft_of

_LACKING = (Cause.UNWRITTEN_OUTPUT, Cause.UNINITIALIZED_READ, Cause.NO_KERNEL, Cause.ALL_ZEROS)


def launch_missing(text: str, clues: Clues) -> Diagnosis | None:
    """What is said of a kernel that no line mentions but its own; None where there is none, or where nothing shows that
    a result lacks what a kernel was to store."""
    draft = draft_of(text)
    seen = [cause for cause in _LACKING if cause in clues.causes]
    if draft is None or not seen or len(draft.never_launched) != 1:
        return None
    (kernel,) = draft.never_launched
    sentence = f"Nothing launches `{kernel.name}`, which is defined in line {kernel.node.lineno}."
    hint = f"launch it as `{kernel.name}[grid](...)` before its result is used"
    return Diagnosis(seen[0], sentence, kernel.node.lineno, hint)
