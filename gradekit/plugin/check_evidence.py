"""What stands behind a check's outcome: its failing example, the last call, the examples before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradekit.plugin import check_points

if TYPE_CHECKING:
    from gradekit.judge.evidence import Diagnosis, EarlierRun
    from gradekit.subject.subject import Call


class History:
    """The examples of a check, in the order in which they ran. Whoever goes through them gets those around the failure
    too: they are tried then, by `around`."""

    def __init__(self) -> None:
        self.ran: list[EarlierRun] = []
        self.around: Callable[[], object] | None = None

    def __iter__(self) -> Iterator[EarlierRun]:
        around, self.around = self.around, None
        if around is not None:
            around()
        return iter(self.ran)


@dataclass
class CheckEvidence:
    """What stands behind a check's outcome.

    `drawn` are the arguments of the failing example by name, `call` the last call that it made, `repeated` what it
    raised when it was run once more for this evidence, `diagnosis` what is wrong with it, where that is clear.
    `is_secret` is whether the example was drawn under the secret seed, `origin` where it came from.
    """

    award: check_points.Award = field(default_factory=check_points.Award)
    drawn: dict[str, Any] = field(default_factory=dict)
    call: Call | None = None
    repeated: BaseException | None = None
    diagnosis: Diagnosis | None = None
    history: History = field(default_factory=History)
    details: dict[str, Any] = field(default_factory=dict)
    is_secret: bool = False
    origin: str = ""
