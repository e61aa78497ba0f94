"""PTX and machine code, read into instructions with the submission's lines."""

from __future__ import annotations

import pytest

from gradekit.inspector import ptx, sass

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

PTX = """\
	.file	1 "submission.py"
	.file	2 "/x/standard.py"
	.loc	1 12 5 // submission.py:12:5
	@%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];
	.loc	2 43 13, function_name $L__info_string0, inlined_at 1 17 24 // standard.py:43:13
	st.global.b16 [ %rd2 + 0 ], { %rs1 };
	cp.async.cg.shared.global [ %r13 + 0 ], [ %rd15 + 0 ], 0x10, %r14;
	cp.async.ca.shared.global [ %r13 + 0 ], [ %rd15 + 0 ], 0x4, %r14;
	cp.async.commit_group;
	.loc	1 44 3
	mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { %r1 }, { %r2 }, { %r3 }, { %r1 };
	fma.rn.f32 	%r5, %r6, %r7, %r8;
	.loc	2 3 1
	@%p2 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];
	cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r2, %r3}], [%r1];
"""


def test_an_instruction_of_machine_code_knows_the_innermost_line_of_the_submission() -> None:
    found = [(i.opcode, i.line) for i in sass.instructions(SASS, "submission.py")]
    assert found == [
        ("IADD3", 17), ("LDG.E.128", 17), ("HGMMA.64x128x16.F32", 44), ("HFMA2.MMA", 44), ("STL.64", None),
    ]  # fmt: skip


def test_what_multiplies_matrices_and_what_goes_to_memory_is_told_from_the_rest() -> None:
    found = sass.instructions(SASS, "submission.py")
    assert [i.uses_tensor_cores for i in found] == [False, False, True, False, False]
    assert [i.memory for i in found] == ["", "load", "", "", ""]
    assert [i.local for i in found] == ["", "", "", "", "store"]


@pytest.mark.parametrize(
    "opcode", ["HMMA.16816.F32", "IMMA.16832.S8.S8", "QGMMA.64x64x32.F32.E5M2.E5M2", "UTCHMMA", "UTCQMMA", "DMMA.8x8x4"]
)
def test_tensor_core_instructions_of_all_generations_are_known(opcode: str) -> None:
    assert sass.SassInstruction(opcode, 1).uses_tensor_cores


def test_the_stack_is_where_spilled_registers_are() -> None:
    assert sass.usage(" Function k:\n  REG:255 STACK:1432 SHARED:0 LOCAL:0 CONSTANT[0]:400") == sass.Usage(255, 1432)
    assert sass.usage("") is None


def test_instructions_of_ptx_know_line_kind_and_width() -> None:
    found = [(i.kind, i.line, i.width, i.is_asynchronous) for i in ptx.instructions(PTX, "submission.py")]
    assert found == [
        ("load", 12, 16, False), ("store", 17, 2, False), ("load", 17, 16, True), ("load", 17, 4, True),
        ("product", 44, 0, False), ("multiply", 44, 0, False), ("load", None, 0, True), ("store", None, 0, True),
    ]  # fmt: skip


def test_an_opcode_is_shortened_by_what_all_have() -> None:
    (product,) = [i for i in ptx.instructions(PTX, "submission.py") if i.kind == "product"]
    assert product.short == "mma.sync.m16n8k16.f32.f16.f16.f32"
