"""Speed gradings a minute with one card and with two, and how far the ratios spread in each.

    python benchmarks/cards.py --count 24 --assignment softmax

A class of submissions, all the same program under comments of their own, is graded without a card first, so that speed
is pending. Then `gradekit grade --resume` measures what waited: with the first card alone, and with both at a time.
Needs two cards.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gradekit.batch.grader import visible_cards
from gradekit.batch.store import Store, StoredResult
from gradekit.versions import environment as versions

ROOT = Path(__file__).parents[1]


def grade(folder: Path, id: str, cards: Sequence[str], out: str, hand_ins: str = "in") -> float:
    """Wall seconds of `gradekit grade --resume` into folder/out with those cards."""
    words = ["grade", str(folder / hand_ins), "-a", id, "-o", str(folder / out), "--resume", "--profile", "quick"]
    added = {"CUDA_VISIBLE_DEVICES": ",".join(cards), "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])}
    began = time.monotonic()
    with (folder / f"{out}.said").open("a") as log:
        subprocess.run(
            [sys.executable, "-m", "gradekit", *words], env=os.environ | added, stdout=log, stderr=log, check=True
        )
    return time.monotonic() - began


def hand_in(folder: Path, id: str, count: int) -> None:
    text = (ROOT / "solutions" / id / "solution.py").read_text()
    for number in range(count):
        (folder / f"s{number:03d}").mkdir(parents=True)
        (folder / f"s{number:03d}/submission.py").write_text(f"{text}\n# student {number}\n")


def unmeasured(out: Path, id: str) -> None:
    """End here where the cards could not measure: what follows would be figures of nothing."""
    why = {check["message"] for results in measured(out, id).values() for result in results
           for check in result.record["checks"] if check["outcome"] == "pending"}  # fmt: skip
    if why or not measured(out, id):
        raise SystemExit(f"no speed was measured: {why or 'no card answered'}")


def measured(out: Path, id: str) -> dict[str, list[StoredResult]]:
    """What each card measured, by its UUID, in order."""
    store, by_card = Store(f"sqlite:///{out / 'class.db'}"), defaultdict[str, list[StoredResult]](list)
    for hand_in in store.hand_ins(id):
        for result in store.history(id, hand_in.digest):
            if result.key.machine != "cpu":
                by_card[str(result.record["environment"].get("gpu_uuid"))].append(result)
    return {card: sorted(results, key=lambda r: r.graded) for card, results in sorted(by_card.items())}


def a_minute(by_card: Mapping[str, Sequence[StoredResult]]) -> float:
    """Speed gradings a minute once every card is at work: between the first and the last result of each."""
    spans = [((r[-1].graded - r[0].graded).total_seconds(), len(r) - 1) for r in by_card.values() if len(r) > 1]
    return sum(60 * count / seconds for seconds, count in spans)


def ratios(results: Sequence[StoredResult]) -> dict[str, list[float]]:
    """Of each check and side, what the submissions came to."""
    came: dict[str, list[float]] = defaultdict(list)
    for result in results:
        for check in result.record["checks"]:
            for side, ratio in check["details"].get("speed", {}).get("ratios", {}).items():
                came[f"{check['id']} {side}"].append(ratio["value"])
    return came


def spread(by_card: Mapping[str, Sequence[StoredResult]]) -> dict[str, dict[str, str]]:
    """Of each card, check and side: the mean ratio and its coefficient of variation in percent."""
    return {
        card: {
            name: f"{statistics.mean(v):.4f} cv {100 * statistics.stdev(v) / statistics.mean(v):.2f} %"
            for name, v in ratios(results).items()
            if len(v) > 1
        }
        for card, results in by_card.items()
    }


def tried(folder: Path, id: str, cards: Sequence[str], out: str) -> dict[str, Any]:
    """What waits in folder/pending, measured with those cards."""
    shutil.copytree(folder / "pending", folder / out)
    seconds = grade(folder, id, cards, out)
    by_card = measured(folder / out, id)
    return {
        "cards": len(cards), "measured": {card: len(results) for card, results in by_card.items()},
        "seconds": round(seconds, 1), "a_minute": round(a_minute(by_card), 2), "spread": spread(by_card),
        "ratios": {card: ratios(results) for card, results in by_card.items()},
    }  # fmt: skip


def main() -> None:
    """Print one JSON object for each try, and the quotient of the rates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--assignment", default="softmax")
    parser.add_argument("--again", action="store_true", help="one card once more after both, to see what order does")
    given = parser.parse_args()
    cards = visible_cards()[:2]
    if len(cards) < 2:
        raise SystemExit(f"this takes two cards, and there are {len(cards)}")
    with tempfile.TemporaryDirectory(prefix="gradekit-cards-") as scratch:
        folder = Path(scratch)
        hand_in(folder / "in", given.assignment, given.count)
        hand_in(folder / "first", given.assignment, 2)
        for out, hand_ins in (("pending", "in"), ("warm", "first")):
            print(out, round(grade(folder, given.assignment, [], out, hand_ins), 1), flush=True)
        seconds = grade(folder, given.assignment, cards, "warm", "first")  # fills the compilers' caches
        print("warm", round(seconds, 1), flush=True)
        unmeasured(folder / "warm", given.assignment)
        tries = [("one", cards[:1]), ("two", cards), *([("again", cards[:1])] if given.again else [])]
        rates = {}
        for name, some in tries:
            came = tried(folder, given.assignment, some, name)
            rates[name] = came["a_minute"]
            print(name, json.dumps(came, indent=1), flush=True)
        print(json.dumps({"two_over_one": round(rates["two"] / rates["one"], 3), **versions()}))


if __name__ == "__main__":
    main()
