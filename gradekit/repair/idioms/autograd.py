"""Mends that exchange two things: names in a formula, saved tensors, gradients that are returned."""

import ast
import difflib
import itertools
from collections.abc import Iterator

from gradekit.repair.mend import Family, Mend
from gradekit.source.draft import Draft
from gradekit.submission.parsed_source import called


def saved_for_another(draft: Draft) -> Iterator[Mend]:
    """What is saved for the backward pass comes back in that order, whatever it is called then: in another order, or
    something else than the argument by whose name it is taken back."""
    names, of = draft.source.differentiated, draft.source.of
    calls = [n for n in draft.source.on_host if isinstance(n, ast.Call) and called(n).endswith(".save_for_backward")]
    back = [n for n in draft.source.on_host if isinstance(n, ast.Assign) and of(n.value).endswith(".saved_tensors")]
    for call, node in itertools.product(calls, back):
        targets = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else []
        kept, taken = ([of(part) for part in parts] for parts in (call.args, targets))
        if kept != taken and sorted(kept) == sorted(taken):
            yield Mend(
                Family.INDEX, 1, node.lineno, (draft.source.replaced(node.targets[0], ", ".join(kept)),),
                f"Line {node.lineno} takes {', '.join(taken)} from what was saved, and line {call.lineno} saved "
                f"{', '.join(kept)}: the order differs.",
                "saved tensors come back in the order in which they were saved",
            )  # fmt: skip
        function = next((f for f in draft.source.host if f.lineno <= call.lineno <= (f.end_lineno or 0)), None)
        inputs = [a.arg for a in function.args.args][1:2] if function is not None and function.name != "forward" else []
        for one, name in zip(call.args, taken, strict=False) if len(kept) == len(taken) else ():
            own = f"{inputs[0]}[{names.index(name)}]" if inputs and name in names else name
            if name in names and of(one) not in (name, own):
                yield Mend(
                    Family.INDEX, 2, one.lineno, (draft.source.replaced(one, own),),
                    f"Line {one.lineno} saves `{of(one)}`, and line {node.lineno} takes it for `{name}`.",
                    f"save {name}", None,
                )  # fmt: skip


def gradients_in_order(draft: Draft) -> Iterator[Mend]:
    """Two gradients that `backward` returns, exchanged."""
    names = draft.source.differentiated
    for function in draft.source.backwards:
        for node in ast.walk(function):
            parts = node.value.elts if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) else []
            named = [part for part in parts if not isinstance(part, ast.Constant)]
            for first, second in itertools.combinations(named, 2):
                one, other = draft.source.of(first), draft.source.of(second)
                i, j = (parts.index(part) for part in (first, second))
                fit = _fit(one, names[j]) + _fit(other, names[i]) if j < len(names) else 0.0
                better = j < len(names) and fit > _fit(one, names[i]) + _fit(other, names[j])
                yield Mend(
                    Family.INDEX, 2 if better else 12, first.lineno,
                    draft.source.exchanged(first, second),
                    f"Line {first.lineno} returns {one} and {other} in each other's place: the order of gradients is "
                    "that of the arguments of the forward pass.",
                    "return one gradient for each argument, in their order",
                )  # fmt: skip


def _fit(gradient: str, name: str) -> float:
    """How much a gradient's name is like that of what it is the gradient of."""
    return difflib.SequenceMatcher(None, gradient.lower(), name.lower()).ratio()


RULES = (saved_for_another, gradients_in_order)
