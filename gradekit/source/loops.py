"""What the head of a loop shows: what it counts with, and how far. `for` and `while` alike.

A `while` counts with what its test names and its body adds to: `while done < n: ...; done += BLOCK`.
"""

from __future__ import annotations

import ast

from gradekit.submission.parsed_source import called

Loop = ast.For | ast.While

RANGES = ("range", "tl.range", "tl.static_range")


def head_of(loop: Loop) -> ast.expr:
    """What decides how often it runs."""
    return loop.iter if isinstance(loop, ast.For) else loop.test


def range_of(loop: Loop) -> list[ast.expr]:
    """The arguments of its range; none where it has no range."""
    over = loop.iter if isinstance(loop, ast.For) else None
    return over.args if isinstance(over, ast.Call) and called(over) in RANGES else []


def counter_of(loop: Loop) -> str:
    """The name that it counts with; "" where there is none."""
    if isinstance(loop, ast.For):
        return loop.target.id if isinstance(loop.target, ast.Name) else ""
    added = {step.target.id for step in steps_of(loop) if isinstance(step.target, ast.Name)}
    named = (node.id for node in ast.walk(loop.test) if isinstance(node, ast.Name))
    return next((name for name in named if name in added), "")


def counts_steps(loop: Loop) -> bool:
    """Whether it counts by one: its steps, and not how far they have come."""
    return 0 < len(range_of(loop)) < 3


def steps_of(loop: Loop) -> list[ast.AugAssign]:
    """What its body adds to something, or takes from it."""
    found = (node for part in loop.body for node in ast.walk(part) if isinstance(node, ast.AugAssign))
    return [node for node in found if isinstance(node.op, (ast.Add, ast.Sub))]


def names_of_steps(loop: Loop) -> set[str]:
    """The names in its head, and in what it adds to its counter."""
    mine = [step.value for step in _moves(loop)]
    return {node.id for part in (head_of(loop), *mine) for node in ast.walk(part) if isinstance(node, ast.Name)}


def _moves(loop: Loop) -> list[ast.AugAssign]:
    """Where the body of a `while` moves its counter on."""
    every = steps_of(loop) if isinstance(loop, ast.While) else []
    return [step for step in every if isinstance(step.target, ast.Name) and step.target.id == counter_of(loop)]
