"""What stands behind a check's outcome: its failing example, the last call, the examples before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradekit.plugin import check_points

if TYPE_CHECKING:
    from gradekit.judge.evidence import Diagnosis
    from gradekit.subject.subject import Call


@dataclass
class CheckEvidence:
    """What stands behind a check's outcome.

    `drawn` are the arguments of the failing example by name, `call` the last call that it made, `repeated` what it
    raised when it was run once more for this evidence, `diagnosis` what is wrong with it, where that is clear.
    `ran` are the arguments of all examples so far, in order.
    `is_secret` is whether the example was drawn under the secret seed, `origin` where it came from.
    """

    award: check_points.Award = field(default_factory=check_points.Award)
    drawn: dict[str, Any] = field(default_factory=dict)
    call: Call | None = None
    repeated: BaseException | None = None
    diagnosis: Diagnosis | None = None
    ran: list[tuple[Any, ...]] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    is_secret: bool = False
    origin: str = ""
