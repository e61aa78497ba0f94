"""Writes the map in docs/how-it-works.md: the picture of the rooms in their layers, and the table that describes them.

    python tools/rooms.py

The picture is drawn from the imports. A line leads from a room down to one that it imports; what it also reaches
by way of another room is left out.
"""

from __future__ import annotations

import re
from pathlib import Path

from drawing import BLUE, DIM, GREEN, GREY, LINE, ORANGE, WIDTH, Sheet
from imports import graph, layers

DOCS = Path(__file__).parent.parent / "docs"
PICTURE, PAGE = DOCS / "rooms.svg", DOCS / "how-it-works.md"

ROOMS = {
    "wire": ("framed JSON messages between processes", "bytes"),
    "reuse": ("caches that a warm grader keeps between submissions, under one switch", "keys and values"),
    "arithmetic": ("operators and whole-number functions by the signs that source text writes", "syntax"),
    "versions": ("the versions that a record names", "the environment"),
    "credit": ("points and partial credit", "numbers"),
    "compat": ("private names of Triton, torch, Hypothesis and pytest, one file for each", "that package alone"),
    "causes": ("the closed vocabulary of why a check fails", "words"),
    "program": ("a traced call as data, and its JSON", "plain data"),
    "origins": ("how host code computed a program's numbers from sizes, as data", "plain data"),
    "schemas": ("what an assignment's TOML files may say, as JSON Schemas", "plain data"),
    "domain": ("what an assignment promises about inputs, read from domain.toml", "plain data"),
    "framework": ("what torch makes of a custom operator, as data", "plain data"),
    "findings": ("findings, outcomes, checks and the report", "plain data"),
    "observations": ("what a run shows: incidents, traffic and counters as data", "plain data"),
    "wellformed": ("whether a program that came over the wire is one", "plain data"),
    "recorded": ("programs that are kept to be run elsewhere", "plain data"),
    "confine": ("the means of isolation: namespaces, Landlock, seccomp, limits", "this process"),
    "processes": ("starts child processes, and ends them with all that they started", "commands"),
    "tracer": ("the only room for student code: traces calls to programs", "the submission; no values, no verdicts"),
    "submission": ("a file, notebook, folder or archive to source text", "bytes; imports nothing of them"),
    "source": ("what a submission's text shows: kernels, launches, accesses, loops, dependences", "source text"),
    "assignment": ("finds assignments and reads what they declare", "files"),
    "inputs": ("input specs, layouts and kinds of values; Hypothesis strategies for them", "what is drawn"),
    "engine": ("evaluates programs on the CPU and watches memory", "inputs; no expected values"),
    "judge": ("references, tolerances, claims and diagnoses", "inputs, results, expected values"),
    "exact": ("a call in exact arithmetic: is its formula right, where does it round", "programs, inputs, expected values"),
    "prove": (
        "what holds of a call for all sizes, by a solver: bounds, coverage, one writer",
        "programs, origins, the domain",
    ),
    "unseen": ("inputs made from what a submission compares, and its examples have not seen", "origins, programs, the domain"),
    "sandbox": ("starts tracers and talks to them", "what a submission's process answers"),
    "interpreter": ("evaluates a submission's source on the tensors of a call", "source text and inputs"),
    "marks": ("points that a person gave", "plain data"),
    "request": ("what a grading run is asked for, as one value", "plain data"),
    "gpu": ("compiles, replays and times programs on a card, in a worker", "the worker: programs and inputs"),
    "report": ("renders records: terminal, JUnit, one file for each LMS", "records"),
    "subject": ("the submission as a test calls it", "programs, runs, the card"),
    "repair": ("edits of a failing submission that make it right, and what to say of them", "source text, calls, expected values"),
    "relations": ("what must hold between the results of several calls", "calls and results"),
    "quiz": ("questions in place of a kernel", "answers and the key"),
    "inspector": ("the machine code of a program's kernels, for a named GPU", "programs"),
    "plugin": ("pytest: the fixture, points, examples, the report", "everything of one grading run"),
    "progress": ("what a check prints while it runs", "titles"),
    "remembered": ("the last check of each of a user's files", "records"),
    "watching": ("gradekit watch: a check on each save", "files' times"),
    "checking": ("one submission from a path to a report, whatever happens", "one grading run"),
    "replaying": ("gradekit replay: a failing call as a Python file", "a submission or a record"),
    "session": ("gradekit in a notebook", "one grading run"),
    "course": ("starters, releases, worksheets, and the proof that an assignment grades as it should", "assignments"),
    "authoring": ("what is wrong with an assignment, by reading, and the files of a new one", "an assignment's text"),
    "doctor": ("what this machine can check", "the machine"),
    "stepview": ("one program of a grid played step by step, as data for a page", "a submission, its inputs and expected values"),
    "bench": ("speed over a range of sizes", "programs and a card"),
    "server": ("a process with torch imported, from which graders and tracers are forked", "nothing of those it forks for"),
    "batch": ("a class: store, scheduler, workers, grade books", "hand-ins and records"),
    "mutation": ("whether an assignment's checks find small edits of its solution", "assignments and records"),
    "calibrate": ("what speed checks may ask for on a card", "assignments, their right submissions and a card"),
    "lms": ("containers of learning management systems", "hand-ins and records"),
    "cli": ("the command line; holds no policy", "arguments"),
    "__main__": ("python -m gradekit", "arguments"),
}
"""From the bottom up, what each room does and what it may know: a room imports only rooms that stand before it."""

STUDENT = {"tracer"}
DATA = {"program", "findings", "causes", "submission", "assignment", "wire"}
GRADER = {"engine", "judge", "gpu", "subject", "plugin"}

ROW, BOX, GAP, MARGIN = 62, 28, 10, 5


def reduced(rooms: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph without edges that a longer way makes superfluous."""
    reach = {name: _reach(name, rooms) for name in rooms}
    return {name: needed - set().union(*(reach[n] for n in needed)) for name, needed in rooms.items()}


def _reach(name: str, rooms: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(rooms[name])
    while waiting:
        other = waiting.pop()
        if other not in found:
            found.add(other)
            waiting.extend(rooms[other])
    return found


def draw() -> Sheet:
    """The picture; the highest layer, which imports all others, stands at the top."""
    rooms = {name: needed for name, needed in graph().items() if name != "__main__"}
    rows = layers(rooms)[::-1]
    sheet = Sheet("The rooms of gradekit in layers; each imports only from layers below it", 40 + ROW * len(rows))
    boxes = {name: box for number, row in enumerate(rows) for name, box in _boxes(row, 20 + ROW * number).items()}
    for name, needed in sorted(reduced(rooms).items()):
        for other in sorted(needed):
            sheet.line(
                _middle(boxes[name]),
                boxes[name][1] + BOX,
                _middle(boxes[other]),
                boxes[other][1],
                colour=LINE,
                width=0.8,
            )
    for name, (x, y, width) in boxes.items():
        sheet.rect(x, y, width, BOX, fill=_fill(name), edge=DIM, round=5, words=name, size=12)
    sheet.text(
        WIDTH / 2,
        34 + ROW * len(rows),
        "orange: runs student code   blue: data   green: runs and judges programs",
        size=11,
        colour=DIM,
        anchor="middle",
    )
    return sheet


def _boxes(row: list[str], y: float) -> dict[str, tuple[float, float, float]]:
    """The rooms of one layer side by side in the middle: left end, top and width of each."""
    widths = [max(46.0, 7.2 * len(name) + 14) for name in row]
    gap = min(GAP, (WIDTH - 2 * MARGIN - sum(widths)) / max(len(row) - 1, 1))  # a long row is drawn closer
    x = (WIDTH - sum(widths) - gap * (len(row) - 1)) / 2
    found = {}
    for name, width in zip(row, widths, strict=True):
        found[name] = (x, y, width)
        x += width + gap
    return found


def _middle(box: tuple[float, float, float]) -> float:
    return box[0] + box[2] / 2


def _fill(name: str) -> str:
    return ORANGE if name in STUDENT else BLUE if name in DATA else GREEN if name in GRADER else GREY


def page(text: str) -> str:
    """how-it-works.md with today's table between its marks, the highest room first."""
    rows = "".join(f"| `{name}` | {does} | {knows} |\n" for name, (does, knows) in reversed(ROOMS.items()))
    table = (
        f"<!-- rooms: begin -->\n| room | what it does | what it may know |\n|---|---|---|\n{rows}<!-- rooms: end -->"
    )
    return re.sub(r"<!-- rooms: begin -->.*<!-- rooms: end -->", lambda match: table, text, flags=re.DOTALL)


if __name__ == "__main__":
    PICTURE.write_text(draw().svg(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
