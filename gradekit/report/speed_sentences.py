"""What was timed on a GPU, in a few plain sentences: a pure function of `details.speed` of a check in the record."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from gradekit.report.text import one_line

SIDES = {
    "student": "the submission", "eager": "eager torch", "compiled": "torch.compile", "ceiling": "the card's ceiling",
}  # fmt: skip
"""What is timed, and what it is beside."""

_MUCH_MORE = 1.5  # times the bytes that have to move: from here on it is worth a word
_BINDS = 0.3  # the share of a ceiling from which it says something: below, launches and waiting take most of the time


def sentences(speed: Mapping[str, Any]) -> list[str]:
    """How long it took beside torch, what binds it, and what a reader must know of the verdict; one line each."""
    return [_times(speed), _roofline(speed["roofline"]), *_more(speed)]


def _times(speed: Mapping[str, Any]) -> str:
    own, where = duration(speed["microseconds"]["student"]), f"{one_line(speed['size'])} on {one_line(speed['card'])}"
    beside = [
        f"{ratio['value']:.2f} times as fast as {SIDES[side]} ({ratio['low']:.2f} to {ratio['high']:.2f}; "
        f"{duration(speed['microseconds'][side])})"
        for side, ratio in speed["ratios"].items()
    ]
    return f"{own} at {where}: {', '.join(beside)}."


def _roofline(roofline: Mapping[str, Any]) -> str:
    times = roofline["bytes_moved"] / max(roofline["bytes_least"], 1)
    asked = f" The kernels ask for {times:.1f} times the bytes that have to move." if times > _MUCH_MORE else ""
    if roofline["binds"] == "memory":
        rate, part = si(roofline["bytes_per_second"], "B/s"), roofline["of_bytes"]
        return _binding("Memory", part, f"{rate} is {part:.0%} of the most that this card moves") + asked
    rate, part = si(roofline["flops_per_second"], "FLOP/s"), roofline["of_flops"]
    return _binding("Arithmetic", part, f"{rate} is {part:.0%} of the most that this card computes")


def _binding(what: str, part: float, how: str) -> str:
    if part < _BINDS:
        return f"Neither memory nor arithmetic is the limit: {how}. The rest is waiting."
    return f"{what} binds: {how}."


def _more(speed: Mapping[str, Any]) -> Iterator[str]:
    for verdict in speed["verdicts"]:
        if verdict["verdict"] == "too close to call":
            asked = f"{verdict['at_least']:g} times as fast as {SIDES[verdict['side']]}"
            yield f"Too close to call: noise leaves open whether it is {asked}, so it counts as reached."
    if speed["configuration"]:
        yield f"Fastest of {len(speed['configurations'])} configurations: {one_line(speed['configuration'])}."
    yield from map(one_line, speed["notes"])


def ceiling(roofline: Mapping[str, Any]) -> float:
    """The least microseconds that the card allows: for the bytes or for the arithmetic, whichever is longer."""
    least = roofline["bytes_least"] / roofline.get("most_bytes_per_second", math.inf)
    peak = roofline.get("most_flops_per_second")
    return 1e6 * float(max(least, roofline.get("flops", 0) / peak if peak else 0.0))


def duration(microseconds: float) -> str:
    """13.21 -> "13.2 µs", 2100 -> "2.1 ms", 1.5e6 -> "1.5 s"."""
    unit, size = next(each for each in (("s", 1e6), ("ms", 1e3), ("µs", 0.0)) if microseconds >= each[1])
    return f"{microseconds / (size or 1.0):.3g} {unit}"


def si(value: float, unit: str) -> str:
    """1.6e7, "B" -> "16 MB"."""
    known = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 0.0))
    prefix, size = next(each for each in known if value >= each[1])
    return f"{value / (size or 1.0):.3g} {prefix}{unit}"
