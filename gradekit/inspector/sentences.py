"""From facts to plain sentences for the student. Each says what the machine code shows; what is unclear is not said."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod

from gradekit.inspector import Limit
from gradekit.inspector.facts import AccessUse, DotUse, Facts, NarrowAccess
from gradekit.inspector.fits import does_not_fit
from gradekit.inspector.targets import TARGETS, Target

SEEN_SMS = TARGETS["sm_90"].sms
"""Submissions see this many SMs when they are traced: a grid of as many is made from it, and not so elsewhere."""


@dataclass(frozen=True)
class Sentence:
    """One thing that the student may want to know of `line`. `kind` is a word from KINDS."""

    kind: str
    text: str
    line: int | None = None


def sentences(facts: Facts) -> list[Sentence]:
    """All that there is to say of a kernel, what weighs most first."""
    return [sentence for speak in KINDS.values() for sentence in speak(facts)]


# --- whether it runs --------------------------------------------------------------------------------------------------


def _not_compiled(facts: Facts) -> Iterable[Sentence]:
    if facts.error:
        ptxas = re.search(r"; error\s*: (.*)", facts.error)  # its own words where it speaks, else the first line
        why = (ptxas[1] if ptxas else facts.error.splitlines()[0]).strip().rstrip(".")
        text = f"{facts.kernel} cannot be compiled for {facts.target.name}: {why} (at the stage {facts.failed})."
        yield Sentence("not-compiled", text)


def _does_not_fit(facts: Facts) -> Iterable[Sentence]:
    most = facts.target.shared_per_block
    if facts.shared is not None and facts.shared > most:
        text = does_not_fit(facts.kernel, facts.target, facts.shared, facts.options["num_stages"])
        yield Sentence("does-not-fit", text)


# --- products ---------------------------------------------------------------------------------------------------------


def _no_tensor_cores(facts: Facts) -> Iterable[Sentence]:
    for use in facts.dots:
        if use.uses is False:
            reason = _no_tensor_core_reason(use, facts.target)
            units = facts.target.matrix_units
            text = f"The dot on line {use.dot.line} does not use {units}" + (f": {reason}." if reason else ".")
            yield Sentence("no-tensor-cores", text, use.dot.line)


def _no_tensor_core_reason(use: DotUse, target: Target) -> str:
    dot = use.dot
    if not target.capability:  # AMD's multiply float32 and float64, too
        return ""
    if dot.left == "float32" and dot.precision == "ieee":
        return "its inputs are float32 with input_precision='ieee'"
    if dot.left == "float64":
        return "its inputs are float64"
    if target.capability < 80 and dot.left in ("float16", "bfloat16", "float32"):
        return f"this Triton uses them from sm_80 on, and this is {target.name}"
    return ""


def _older_instruction(facts: Facts) -> Iterable[Sentence]:
    new = {90: "wgmma", 100: "tcgen05.mma"}.get(facts.target.capability)
    for use in facts.dots:
        older = bool(use.instructions) and all(op.startswith("mma.sync") for op in use.instructions)
        reason = _older_reason(use, facts)
        if new and older and use.uses and reason:
            text = f"The dot on line {use.dot.line} uses the tensor cores as an A100 would (mma.sync), not {new}"
            yield Sentence("older-tensor-instruction", f"{text}: {reason}.", use.dot.line)


def _older_reason(use: DotUse, facts: Facts) -> str:
    if use.dot.m < 64:
        return f"that takes tiles of 64 rows, and this one has {use.dot.m}"
    if facts.asked_warps % 4:
        return f"that takes groups of 4 warps, and num_warps is {facts.asked_warps}"
    return ""


# --- memory -----------------------------------------------------------------------------------------------------------


def _narrow(facts: Facts) -> Iterable[Sentence]:
    for use in facts.accesses:
        if use.is_narrow and (use.kept_by or _is_the_students(use, facts.target)):
            yield Sentence(f"narrow-{use.access.kind}", _narrow_text(use, facts), use.access.line)


def _is_the_students(use: AccessUse, target: Target) -> bool:
    """The compiler chooses the width of what goes to shared memory by the layout that a product wants there, and on
    AMD's cards stores a product in the layout in which the matrix cores leave it."""
    return bool(target.capability) and not use.is_asynchronous and not use.access.by_descriptor


def _narrow_text(use: AccessUse, facts: Facts) -> str:
    noun = "load" if use.access.kind == "load" else "store"
    possible = max((b.width for b in use.kept_by), default=use.possible)
    text = (
        f"The {noun} on line {use.access.line} moves {_bytes(use.width)} at a time in each thread, where {possible} fit"
    )
    reasons = "; ".join(_reasons(use.kept_by))
    return text + (f": {reasons}" if reasons else "") + _not_asynchronous(use, facts) + "."


def _reasons(blame: Sequence[NarrowAccess]) -> Iterable[str]:
    """Clauses: what has a value that is no multiple, what is not known to be one, addresses, and what lies apart."""
    odd = [f"{b.argument} is {b.value}" for b in blame if b.kind == "multiple" and (b.value or 0) % 16]
    unknown = [b.argument for b in blame if b.kind == "multiple" and not (b.value or 0) % 16]
    if odd:
        yield f"{' and '.join(odd)}, {'no multiple' if len(odd) == 1 else 'no multiples'} of 16"
    if unknown:
        yield f"{' and '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} not known to be a multiple of 16"
    yield from (f"the address of {b.argument} is no multiple of 16" for b in blame if b.kind == "address")
    apart = [b for b in blame if b.kind == "apart"]
    yield from (f"neighbouring elements lie {b.argument} = {b.value} elements apart" for b in apart)


def _not_asynchronous(use: AccessUse, facts: Facts) -> str:
    """Copies that run beside the products move four bytes at least."""
    is_small = use.access.feeds_dot and not use.is_asynchronous and (use.width or 4) < 4
    may_copy = facts.target.capability >= 80 and facts.options["num_stages"] >= 2
    return "; and an asynchronous copy takes at least 4, so this is none" if is_small and may_copy else ""


def _spills(facts: Facts) -> Iterable[Sentence]:
    if facts.stack < Limit.SPILLED_BYTES or not facts.local:
        return
    most = facts.local[0]
    where = f", most of it on line {most.line} (loads: {most.loads}, stores: {most.stores})" if most.line else ""
    what = "Registers do not suffice" if not facts.has_stack_array else "Not all of its values are in registers"
    text = f"{what} ({facts.registers} for each thread): {facts.stack} bytes of each thread go through local memory"
    yield Sentence("spills", f"{text}{where}.", most.line)


# --- the whole kernel -------------------------------------------------------------------------------------------------


def _float64(facts: Facts) -> Iterable[Sentence]:
    for line in facts.float64_lines:
        yield Sentence("float64", f"Line {line} computes in float64, although no input is float64.", line)


def _few_programs(facts: Facts) -> Iterable[Sentence]:
    programs, ctas = prod(facts.grid), facts.options["num_ctas"]
    sms = facts.target.sms
    if 0 < programs * ctas < sms and programs * ctas != SEEN_SMS:
        few, verb = ("one program", "is") if programs == 1 else (f"{programs} programs", "are")
        busy = "one" if programs * ctas == 1 else str(programs * ctas)
        card = f"{'an' if facts.target.card[0] in 'AHLMR' else 'a'} {facts.target.card}"
        text = f"Only {few} of {facts.kernel} {verb} launched for this input: {busy} of the {sms} {facts.target.unit}s "
        yield Sentence("few-programs", f"{text}of {card} can work at most.")


KINDS: dict[str, Callable[[Facts], Iterable[Sentence]]] = {
    "not-compiled": _not_compiled, "does-not-fit": _does_not_fit, "no-tensor-cores": _no_tensor_cores,
    "spills": _spills, "narrow-load, narrow-store": _narrow, "older-tensor-instruction": _older_instruction,
    "few-programs": _few_programs, "float64": _float64,
}  # fmt: skip
"""Each kind of sentence and what speaks it, what weighs most first."""


def _bytes(count: int | None) -> str:
    return "1 byte" if count == 1 else f"{count} bytes"
