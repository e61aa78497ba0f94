"""Size classes: what sizes of a dimension have in common for a kernel, such as being one more than a power of two."""

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SizeClass:
    """Sizes that a kernel is likely to treat alike; `members` ascend."""

    name: str
    members: tuple[int, ...]

    def __str__(self) -> str:
        return self.name


@functools.lru_cache(maxsize=1024)
def classes(least: int, most: int) -> tuple[SizeClass, ...]:
    """The classes of the sizes from `least` to `most`, simplest first; each has members that no earlier one has. 0, 1,
    2; one less than a power of two, a power of two, one more; primes that are none of these; and `most` itself."""
    powers = [1 << k for k in range(2, most.bit_length() + 1)]
    proposed = {
        "0": [0], "1": [1], "2": [2], "2**k": powers, "2**k + 1": [power + 1 for power in powers],
        "2**k - 1": [power - 1 for power in powers], "prime": [_prime_from(power + power // 3) for power in powers],
        "most": [most],
    }  # fmt: skip
    found, seen = [], set[int]()
    for name, members in proposed.items():
        own = sorted({n for n in members if least <= n <= most} - seen)
        if own:
            found.append(SizeClass(name, tuple(own)))
            seen |= set(own)
    return tuple(found)


def listed(sizes: Sequence[int]) -> tuple[SizeClass, ...]:
    """A class for each of these sizes."""
    return tuple(SizeClass(str(size), (size,)) for size in sizes)


def _prime_from(number: int) -> int:
    return next(n for n in itertools.count(max(number, 2)) if all(n % d for d in range(2, math.isqrt(n) + 1)))


class Sizes(Sequence[int]):
    """What Hypothesis draws a size from: all from `least` to `most` once, then the members of `preferred` three times
    as often. Each size can be reached by a smaller index than a larger one, which is how Hypothesis shrinks."""

    def __init__(self, least: int, most: int, preferred: Sequence[SizeClass]) -> None:
        self.least, self.span = least, most - least + 1
        self.preferred = [size for one in preferred for size in one.members if least <= size <= most] or [most]

    def __len__(self) -> int:
        return 4 * self.span

    def __getitem__(self, index: int) -> int:  # type: ignore[override]
        if index < self.span:
            return self.least + index
        return self.preferred[(index - self.span) * len(self.preferred) // (3 * self.span)]

    def index(self, size: int, *bounds: int) -> int:
        """The smallest index of `size`."""
        if not self.least <= size < self.least + self.span:
            raise ValueError(f"{size} is no size from {self.least} to {self.least + self.span - 1}")
        return size - self.least
