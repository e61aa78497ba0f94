"""What a first look at changes need not do: steps that lead to nothing, and changes that come late."""

import ast
from collections import Counter

import torch

from gradekit.engine import run
from gradekit.interpreter.shown_call import ShownCall, is_like
from gradekit.interpreter.walk import Substitution
from gradekit.interpreter.walked_call import WalkedCall, code_of
from gradekit.repair.operators.all_changes import EARLY, LATE, changes_of_kernel
from gradekit.repair.operators.changes import ALL_TURNS
from gradekit.source.draft import Draft
from gradekit.submission.parsed_source import ParsedSource
from tests.gpu.programs import traced
from tests.repair.test_screen import MEANS, inputs, shown
from tests.tracer.styles import Text


def walked(source: ParsedSource, call: ShownCall, allow: tuple[str, ...] = ()) -> WalkedCall:
    replay = WalkedCall(call.program, call.inputs, code_of(source), allow)
    replay.run()
    return replay


def test_early_and_late_changes_are_all_that_there_are() -> None:
    call, _ = shown(MEANS, torch.zeros(3), *inputs())
    draft = Draft(MEANS)
    watched = walked(draft.source, call).begun["means_kernel"].watched
    early, late, every = (
        Counter((change.turn, change.new, change.sentence) for change, _ in changes_of_kernel(draft.kernels[0], draft, watched, turns))
        for turns in (EARLY, LATE, ALL_TURNS)
    )
    assert early and late and early + late == every


BETWEEN = MEANS.replace(
    "    return out\n",
    """    unused = torch.zeros((2, 3), dtype=x.dtype, device=x.device)
    unused[0] = out
    both = torch.zeros((2, 3), dtype=x.dtype, device=x.device)
    both[1] = out
    return both.sum() / 2, out.clone()
""",
)
ALLOWED = ("aten::sum", "aten::div")


def test_steps_between_launches_give_in_each_copy_what_they_give_alone() -> None:
    program, tensors = traced(Text(BETWEEN), "entry", *inputs())
    results = run(program, tensors, allow=ALLOWED).results
    replay = walked(ParsedSource(BETWEEN), ShownCall(program, tensors, results, lambda results: False), ALLOWED)
    nodes = {node.id: node for node in replay.begun["means_kernel"].watched.values if isinstance(node, ast.Name)}
    swaps = [[(nodes["scale"], nodes[name])] for name in ("scale", "total")]
    together = replay.changed("means_kernel", Substitution.of(swaps), 0)
    for number, swap in enumerate(swaps):
        mine, alone = together.of(number), replay.changed("means_kernel", Substitution.of([swap]), 0).of(0)
        assert mine is not None and alone is not None and is_like(mine, alone)
        assert is_like(mine, results) is (number == 0)
