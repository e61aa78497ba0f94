"""What looking for the mistakes of one submission may use: one budget in the engine's units (see engine.budget), of
which each step has its share."""

from __future__ import annotations

MOST = 2_500_000_000
"""For all checks of a submission, where it has one mistake: about so many nanoseconds."""

TRIED, IN_KERNELS = 0.78, 0.17
"""The shares of texts that are traced and run, and of changes of kernels that are walked; the rest is for changes of
host code."""

AT_LEAST = 0.1
"""So much of the whole there is for a text in which one of two mistakes is mended, where less is left of it."""


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
        self.most = most = MOST if most is None else most
        self.tried, self.in_kernels = Share(int(TRIED * most)), Share(int(IN_KERNELS * most))
        self.on_host = Share(most - self.tried.most - self.in_kernels.most)
        self._seconds: list[Work] = []

    def of_a_second(self) -> Work:
        """A budget for one more text, whose use counts as this one's."""
        self._seconds.append(second := Work(max(self.most - self.used, int(AT_LEAST * self.most))))
        return second

    @property
    def used(self) -> int:
        """What has been used so far."""
        shares = self.tried, self.in_kernels, self.on_host
        return sum(share.most - share.left for share in shares) + sum(second.used for second in self._seconds)
