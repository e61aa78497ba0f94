"""A mapping of bounded weight: what was asked for longest ago makes room for what is new.

A grader that stays warm remembers much that the next submission can use, and must not grow for a whole night.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Shelf(Generic[K, V]):
    """Values by their keys; together they weigh `most` at most, and none of them more than `largest`.

    `weigh` tells what a value weighs when it is kept: bytes, as a rule. Without it, each weighs 1.
    """

    def __init__(self, most: int, weigh: Callable[[V], int] | None = None, largest: int | None = None) -> None:
        self.most, self.largest = most, most if largest is None else largest
        self.weight = 0
        self._weigh = weigh
        self._kept: collections.OrderedDict[K, tuple[V, int]] = collections.OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: K) -> bool:
        return key in self._kept

    def get(self, key: K) -> V | None:
        """The value that was kept under `key`, if it still is."""
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def keep(self, key: K, value: V) -> None:
        """Keep `value`, in place of what `key` had; nothing is kept of one that is too large."""
        self.drop(key)
        weight = 1 if self._weigh is None else self._weigh(value)
        if weight > self.largest:
            return
        self._kept[key] = value, weight
        self.weight += weight
        while self.weight > self.most:
            self.weight -= self._kept.popitem(last=False)[1][1]

    def drop(self, key: K) -> None:
        """Forget what `key` has, if anything."""
        self.weight -= self._kept.pop(key, (None, 0))[1]
