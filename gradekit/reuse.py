"""What one submission's grading may reuse of another's: all such caches are declared by `shared`, and obey one switch.

A user's next check is on the same inputs, and so is a class after the assignment's own solution. So a warm grader (see
gradekit.server.template and gradekit.batch.grader) begins with drawn inputs, references, kernels and runs of gradings
before it, after `keep_between_submissions`. Anywhere else every submission begins with nothing: `per_submission` gives
it caches of its own, which end with it. Records are the same either way (tests/batch/test_equal_records.py compares
them); only the time differs.

A cache is bounded, and evicts what was used longest ago: a process that stays must not grow. What a fork adds to them
is handed on to the process that goes on.
"""

import collections
import contextlib
import gc
import importlib
import io
import marshal
import pickle
import sys
import types
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

ENTRIES = 1 << 14  # what a cache holds whose entries are small

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class LruCache(Generic[K, V]):
    """A mapping of bounded weight: at most `most` in all, and at most `largest` for one value. `weigh` gives a value's
    weight when it is put in, as a rule its bytes. Without it, each value weighs 1."""

    def __init__(
        self, most: int = ENTRIES, weigh: Callable[[V], int] | None = None, largest: int | None = None
    ) -> None:
        self.most, self.largest = most, most if largest is None else largest
        self.weight, self.is_of_small = 0, weigh is None
        self._weigh = weigh
        self._entries: collections.OrderedDict[K, tuple[V, int]] = collections.OrderedDict()

    def get(self, key: K) -> V | None:
        """The value of `key`, which counts as used now; None where there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def items(self) -> list[tuple[K, V]]:
        """All entries, that used longest ago first."""
        return [(key, value) for key, (value, _) in self._entries.items()]

    def put(self, key: K, value: V) -> None:
        """Set the value of `key`, and evict what was used longest ago; a value above `largest` is not stored."""
        self.weight -= self._entries.pop(key, (None, 0))[1]
        weight = 1 if self._weigh is None else self._weigh(value)
        if weight > self.largest:
            return
        self._entries[key] = value, weight
        self.weight += weight
        while self.weight > self.most:
            self.weight -= self._entries.popitem(last=False)[1][1]


class Shared(Generic[T]):
    """Something that `make` makes once for the submission that is being graded, or once for all of a warm grader's."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make

    @property
    def current(self) -> T:
        """What is in use now, made at its first use."""
        found = _in_use.get(self)
        if found is None:
            found = _in_use[self] = self._make()
        return cast(T, found)


class SharedCache(Shared[LruCache[K, V]]):
    """A shared LruCache."""

    def get(self, key: K) -> V | None:
        """See LruCache.get."""
        return self.current.get(key)

    def put(self, key: K, value: V) -> None:
        """See LruCache.put."""
        self.current.put(key, value)


def shared(
    most: int = ENTRIES, weigh: Callable[[V], int] | None = None, largest: int | None = None
) -> SharedCache[Any, V]:
    """A cache that a module keeps for all submissions of a warm grader, with the limits of an LruCache."""
    return SharedCache(lambda: LruCache(most, weigh, largest))


relied_on: set[Path] = set()
"""The folders whose files what is kept depends on: those of the assignments that were graded."""

submitted: set[Path] = set()
"""The submissions' files, which may lie in such a folder: of them, nothing is kept but under their text."""

_in_use: dict[Shared[Any], Any] = {}
_keeping = False


def keep_between_submissions() -> None:
    """From now on, what this process learns from one submission serves the next: the warm grader's first act."""
    global _keeping
    _keeping = True


def is_keeping() -> bool:
    """Whether it does so."""
    return _keeping


def per_submission() -> contextlib.AbstractContextManager[None]:
    """Open while one submission is graded: with caches of its own, unless this process keeps them."""
    return contextlib.nullcontext() if _keeping else kept(keeping=False)


@contextlib.contextmanager
def kept(keeping: bool = True) -> Iterator[None]:
    """As `keep_between_submissions`, with caches of its own while open: for tests and benchmarks."""
    global _in_use, _keeping
    before = _in_use, _keeping
    _in_use, _keeping = {}, keeping
    try:
        yield
    finally:
        _in_use, _keeping = before


# --- what a fork has learned, for the process that goes on ------------------------------------------------------------

Known = dict[Shared[Any], set[Hashable]]
_received: list[bytes] = []


def known() -> Known:
    """The keys in all caches of small entries."""
    caches = ((shared, cache) for shared, cache in _in_use.items() if isinstance(cache, LruCache) and cache.is_of_small)
    return {shared: {key for key, _ in cache.items()} for shared, cache in caches}


def learned(before: Known) -> bytes:
    """What has come into these caches since they had the keys `before`, pickled, for `receive` in the process of which
    this one is a fork. Tensors are left out: to make them anew costs about as much as to send them."""
    places = {
        shared: (module.__name__, name)
        for module in [*sys.modules.values()] if getattr(module, "__name__", "").startswith("gradekit.")
        for name, shared in vars(module).items() if isinstance(shared, Shared)
    }  # fmt: skip
    new = {}
    for shared in known():
        old = before.get(shared, set())
        entries = [entry for entry in shared.current.items() if entry[0] not in old]
        new[places[shared]] = _pickled(entries) or _pickled([entry for entry in entries if _pickled(entry)])
    return pickle.dumps(new)


def receive(data: bytes) -> None:
    """Keeps what a fork has `learned`, until `merge_received` unpickles it: nobody waits for that then."""
    _received.append(data)


def merge_received() -> None:
    """Puts what was received into the caches of this process; an entry that is there already stays."""
    gc.disable()  # many small objects, all of which stay
    for data in _received:
        for (module, name), entries in pickle.loads(data).items():
            cache = getattr(importlib.import_module(module), name).current
            for key, value in pickle.loads(entries):
                if cache.get(key) is None:
                    cache.put(key, value)
    _received.clear()
    gc.enable()


class _Pickler(pickle.Pickler):
    """A function is known by its code where that is asked for, and by its name else; not one of an assignment's tests,
    which are forgotten when they have run."""

    def reducer_override(self, value: Any) -> Any:
        """As pickle asks. Raises PicklingError."""
        if isinstance(value, types.CodeType):
            return marshal.loads, (marshal.dumps(value),)
        if isinstance(value, (types.FunctionType, type)) and value.__module__.rpartition(".")[2].startswith("test_"):
            raise pickle.PicklingError(f"{value.__qualname__} is one of tests")
        return NotImplemented


def _pickled(value: Any) -> bytes:
    """Nothing where it cannot be handed on."""
    written = io.BytesIO()
    try:
        _Pickler(written, pickle.HIGHEST_PROTOCOL).dump(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        return b""
    return written.getvalue()
