"""A kernel's stages, TTIR, PTX and machine code, read and shown under the submission's lines."""

import pytest

from gradekit.engine.ttir import Module, parse
from gradekit.inspector.facts import accesses, dots
from gradekit.inspector.instructions import instructions, rows, usage
from gradekit.inspector.narrow_access import unknown_arguments, with_divisible, with_one
from tests.beside import beside

from .inspected import float16, float32, inspected, line, program

SASS = """\
	//## File "/x/standard.py", line 43 inlined at "submission.py", line 17
	//## File "submission.py", line 17 inlined at "submission.py", line 34
	//## File "submission.py", line 34
        /*0010*/                   IADD3 R0, R1, R2, RZ ;
        /*0020*/              @!P0 LDG.E.128 R4, desc[UR12][R6.64] ;
	//## File "submission.py", line 44
        /*0030*/                   HGMMA.64x128x16.F32 R24, gdesc[UR8], R24 ;
        /*0040*/                   HFMA2.MMA R1, -RZ, RZ, 0, 0 ;
	//## File "/x/elsewhere.py", line 3
        /*0050*/                   STL.64 [R1+0x8], R2 ;
"""

PTX = beside(__file__)["ptx"]

AMDGCN = beside(__file__)["amdgcn"]


def test_an_instruction_of_machine_code_knows_the_innermost_line_of_the_submission() -> None:
    found = [(i.opcode, i.line) for i in instructions("sass", SASS, "submission.py")]
    assert found == [("IADD3", 17), ("LDG.E.128", 17), ("HGMMA.64x128x16.F32", 44), ("HFMA2.MMA", 44), ("STL.64", None)]


def test_what_multiplies_matrices_and_what_goes_to_memory_is_told_from_the_rest() -> None:
    found = instructions("sass", SASS, "submission.py")
    assert [i.kind for i in found] == ["", "load", "product", "", "spill"]


@pytest.mark.parametrize(
    "opcode", ["HMMA.16816.F32", "IMMA.16832.S8.S8", "QGMMA.64x64x32.F32.E5M2.E5M2", "UTCHMMA", "UTCQMMA", "DMMA.8x8x4"]
)
def test_tensor_core_instructions_of_all_generations_are_known(opcode: str) -> None:
    (found,) = instructions("sass", f"        /*0030*/   {opcode} R24, R8, R24 ;", "submission.py")
    assert found.kind == "product"


def test_the_stack_is_where_spilled_registers_are() -> None:
    assert usage(" Function k:\n  REG:255 STACK:1432 SHARED:0 LOCAL:0 CONSTANT[0]:400") == (255, 1432)
    assert usage("") is None


def test_instructions_of_ptx_know_line_kind_and_width() -> None:
    found = [(i.kind, i.line, i.width, i.is_asynchronous) for i in instructions("ptx", PTX, "submission.py") if i.kind]
    assert found == [
        ("load", 12, 16, False), ("store", 17, 2, False), ("load", 17, 16, True), ("load", 17, 4, True),
        ("product", 44, 0, False), ("multiply", 44, 0, False), ("load", None, 0, True), ("store", None, 0, True),
    ]  # fmt: skip


def test_an_opcode_is_shortened_by_what_all_have() -> None:
    (product,) = [i for i in instructions("ptx", PTX, "submission.py") if i.kind == "product"]
    assert product.short == "mma.sync.m16n8k16.f32.f16.f16.f32"


def test_instructions_of_amds_assembly_know_line_kind_and_width() -> None:
    found = [(i.kind, i.line, i.width) for i in instructions("amdgcn", AMDGCN, "submission.py") if i.kind]
    assert found == [
        ("load", 20, 16), ("load", 18, 2), ("load", 18, 4), ("spill", None, 8), ("product", 44, 0), ("multiply", 44, 0),
        ("double", 44, 0), ("atomic", 44, 0),
    ]  # fmt: skip
    asynchronous = [i.opcode for i in instructions("amdgcn", AMDGCN, "submission.py") if i.is_asynchronous]
    assert asynchronous == ["buffer_load_dword"]
    assert usage(AMDGCN) == (96, 24)


# --- what a kernel's TTIR asks for, and its text as if more were known ------------------------------------------------


def ttir(entry: str, *inputs: object) -> str:
    (kernel,) = program(entry, *inputs).kernels.values()  # type: ignore[arg-type]
    return kernel.ttir


def module(entry: str, *inputs: object) -> Module:
    return parse(ttir(entry, *inputs))


ODD = float16(4096, 1000), float16(1000, 4096)


def test_a_dot_knows_its_line_tile_and_dtypes() -> None:
    (dot,) = dots(module("matmul", *ODD), "submission.py")
    assert (dot.line, dot.m, dot.n, dot.k, dot.left, dot.result) == (line("dot"), 64, 64, 32, "float16", "float32")


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


# --- every stage's rows, under the submission's lines -----------------------------------------------------------------


LOADS = {"ttir": "tt.load", "ttgir": "tt.load", "ptx": "ld.global", "sass": "LDG", "amdgcn": "buffer_load"}


def compiled(stage: str) -> str:
    on = "gfx942" if stage == "amdgcn" else "sm_80"
    return inspected("copy", float32(4096, 1024), on=on).stages[stage]


@pytest.mark.parametrize("stage", LOADS)
def test_the_load_of_every_stage_stands_under_the_line_that_wrote_it(stage: str) -> None:
    text = compiled(stage)
    found = [number for number, row in rows(stage, text, "submission.py") if LOADS[stage] in row]
    assert set(found) == {line("load x")}


@pytest.mark.parametrize(
    ("stage", "place"),
    [("ttir", "loc("), ("ttgir", "loc("), ("ptx", ".loc"), ("sass", "//##"), ("amdgcn", ".loc")],
)
def test_what_only_carries_places_is_left_out(stage: str, place: str) -> None:
    text = compiled(stage)
    assert place in text
    assert not [row for _, row in rows(stage, text, "submission.py") if place in row]
