"""A handout: its table of what an entry takes, made from the domain, and its text as a page shows it."""

import re
from pathlib import Path

from gradekit.domain import ANY_DIMENSIONS, EntryDomain, ScalarDomain, SizeDomain, Tensor

BEGIN, END = "<!-- domain: begin -->", "<!-- domain: end -->"


def handout(text: str, entry: EntryDomain) -> str:
    """An assignment's handout with the domain of its entry between its marks."""
    rows = "".join(
        f"| {called} | {_shape(argument)} | {_dtype(argument, entry)} |\n"
        for called, argument in zip(_called(entry), entry.arguments, strict=True)
    )
    sizes = "; ".join(filter(None, map(_range, entry.sizes.values())))
    limits = "".join(f" {limit.replace('*', '·')}." for limit in entry.limits)
    no_larger = "No tensor has more than 2³¹ − 2²¹ elements."
    may = "may be one tensor, or overlap in memory."
    shapes = {tensor.name: tensor.shape for tensor in entry.tensors}
    one = "".join(
        f"{' Of one shape,' * (shapes[first] != shapes[second])} `{first}` and `{second}` {may}"
        for first, second in map(str.split, entry.aliases)
    )
    holding = dict.fromkeys(tensor.special for tensor in entry.tensors if tensor.special)
    alike = {values: [f"`{one.name}`" for one in entry.tensors if one.special == values] for values in holding}
    special = "".join(f" {', '.join(names)} may hold {', '.join(values)}." for values, names in alike.items())
    table = f"| argument | shape | dtype |\n|---|---|---|\n{rows}\n{sizes}.{limits} {no_larger}{one}{special}\n"
    new = f"{BEGIN}\n{table}{END}"
    return re.sub(f"{BEGIN}.*{END}", lambda match: new, text, flags=re.DOTALL)


def as_shown(path: Path) -> str:
    """The text of the handout at `path` as a page shows it, on one line; "" where there is none."""
    return " ".join(re.sub("[*`]", "", path.read_text("utf-8", "replace")).split()) if path.is_file() else ""


def _called(entry: EntryDomain) -> list[str]:
    """What a row calls each argument: those of a list by their places in it."""
    names = [f"`{argument.name}`" for argument in entry.arguments]
    for number, (first, length) in enumerate(entry.lists, 1):
        which = f"list {number}" if len(entry.lists) > 1 else "the list"
        names[first : first + length] = [f"{which}, `[{place}]`" for place in range(length)]
    return names


def _shape(argument: Tensor | ScalarDomain) -> str:
    if isinstance(argument, ScalarDomain):
        return "True or False" if argument.type == "bool" else "a number" + _between(argument.least, argument.most)
    shape = f"[{', '.join(part.replace('*', '·') for part in argument.shape)}]"
    return f"{shape} or None" if argument.optional else shape


def _between(least: float | None, most: float | None) -> str:
    return (f" from {least:.10g}" if least is not None else "") + (f" to {most:.10g}" if most is not None else "")


def _dtype(argument: Tensor | ScalarDomain, entry: EntryDomain) -> str:
    return argument.type if isinstance(argument, ScalarDomain) else ", ".join(entry.dtype_choices(argument.dtype))


def _range(size: SizeDomain) -> str:
    if size.name == ANY_DIMENSIONS:
        return f"`...`: {size.dims[0]} to {size.dims[1]} dimensions, each {size.least} or more"
    if size.only:
        return f"{size.name}: {', '.join(map(str, size.only))}"
    open_ended = size.most >= 2**31 - 2
    return f"{size.name}: {size.least} or more" if open_ended else f"{size.name}: {size.least} to {size.most}"
