"""What a kernel's TTIR asks for, and its text as if more were known."""

from __future__ import annotations

from gradekit.engine.ttir import Module, parse
from gradekit.inspector.facts import accesses, dots
from gradekit.inspector.narrow_access import unknown_arguments, with_divisible, with_one

from .inspected import float16, line, program


def ttir(entry: str, *inputs: object) -> str:
    (kernel,) = program(entry, *inputs).kernels.values()  # type: ignore[arg-type]
    return kernel.ttir


def module(entry: str, *inputs: object) -> Module:
    return parse(ttir(entry, *inputs))


ODD = float16(4096, 1000), float16(1000, 4096)


def test_a_dot_knows_its_line_tile_and_dtypes() -> None:
    (dot,) = dots(module("matmul", *ODD), "submission.py")
    assert (dot.line, dot.m, dot.n, dot.k, dot.left, dot.result) == (
        line("dot"), 64, 64, 32, "float16", "float32",
    )  # fmt: skip


def test_an_access_knows_the_arguments_that_its_addresses_and_its_mask_depend_on_through_the_loop() -> None:
    found = {access.line: access for access in accesses(module("matmul", *ODD), "submission.py")}
    load, store = found[line("load a")], found[line("store c")]
    assert load.pointer == ("a", "K", "sa") and load.mask == ("M", "K")
    assert load.feeds_dot and load.elements == 64 * 32
    assert store.pointer == ("c", "sc") and not store.feeds_dot


def test_arguments_that_are_no_multiples_are_unknown_until_the_text_says_otherwise() -> None:
    text = ttir("matmul", *ODD)
    assert list(unknown_arguments(text, parse(text).entry)) == ["K", "sa"]
    known = with_divisible(text, ["K", "sa"])
    assert unknown_arguments(known, parse(known).entry) == {}
    assert known.count("tt.divisibility") == text.count("tt.divisibility") + 2


def test_an_argument_as_the_constant_one_keeps_the_text_whole() -> None:
    text = with_one(ttir("copy", float16(8, 64, stride=(128, 2))), "s1")
    assert "%s1 = arith.constant 1 : i32" in text and "s1_as_given" in parse(text).entry.arguments
    assert with_one(text, "no_such") == text
