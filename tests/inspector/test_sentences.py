"""Each kind of sentence on a kernel that shows it, and none on one that does not."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gradekit.inspector.compile import Compiled, CompileJob, compile_all
from gradekit.inspector.inspect import inspect
from gradekit.inspector.sentences import KINDS
from gradekit.inspector.targets import target
from gradekit.program import Kernel, Launch, Program, View

from .inspected import float16, float32, inspected, line, said

NONSENSE = """\
module {
  tt.func public @k(%x: f32) {
    %y = tt.dot %x, %x, %x : f32 * f32 -> f32
    tt.return
  }
}
"""
"""Our reader takes it for a dot; MLIR does not."""

BIG32 = float32(4096, 4096)
BIG16 = float16(4096, 4096)


@pytest.fixture(scope="module", autouse=True)
def compiled_once() -> Iterator[None]:
    """Several tests look at one kernel."""
    known: dict[str, Compiled] = {}

    def compiled(jobs: Sequence[CompileJob], **more: int) -> list[Compiled]:
        new = [job for job in jobs if repr(job) not in known]
        known.update(zip(map(repr, new), compile_all(new, **more), strict=True))
        return [known[repr(job)] for job in jobs]

    with pytest.MonkeyPatch.context() as patch:
        for module in ("inspect", "narrow_access"):
            patch.setattr(f"gradekit.inspector.{module}.compile_all", compiled)
        yield


@pytest.mark.sample(4, of="machine code")
def test_a_float32_dot_that_keeps_its_inputs_whole_does_not_use_tensor_cores() -> None:
    expected = (
        f"The dot on line {line('dot')} does not use tensor cores: its inputs are float32 with input_precision='ieee'."
    )
    assert said("matmul", BIG32, BIG32) == {"no-tensor-cores": [expected]}


@pytest.mark.parametrize(("entry", "given", "on"), [("matmul_tf32", BIG32, "sm_80"), ("matmul", BIG16, "sm_90")])
@pytest.mark.sample(4, of="machine code")
def test_a_dot_that_uses_tensor_cores_is_not_blamed(entry: str, given: object, on: str) -> None:
    assert said(entry, given, given, on=on) == {}  # type: ignore[arg-type]
    (use,) = inspected(entry, given, given, on=on).facts.dots  # type: ignore[arg-type]
    assert use.uses is True and use.instructions


@pytest.mark.sample(4, of="machine code")
def test_a_card_that_this_triton_knows_no_tensor_cores_of_is_named() -> None:
    (text,) = said("matmul", BIG16, BIG16, on="sm_75")["no-tensor-cores"]
    assert text.endswith("does not use tensor cores: this Triton uses them from sm_80 on, and this is sm_75.")


@pytest.mark.sample(4, of="machine code")
@pytest.mark.parametrize(
    ("on", "instruction"), [("sm_80", "mma.sync"), ("sm_90", "wgmma.mma_async"), ("sm_100", "tcgen05.mma")]
)
def test_both_dots_of_attention_use_the_tensor_cores_of_each_card(on: str, instruction: str) -> None:
    spec = float16(4096, 64)
    uses = inspected("attention", spec, spec, spec, on=on).facts.dots
    assert [use.dot.line for use in uses] == [line("first dot"), line("second dot")]
    assert all(use.uses and all(op.startswith(instruction) for op in use.instructions) for use in uses)


@pytest.mark.sample(4, of="machine code")
def test_tiles_of_few_rows_use_the_tensor_cores_as_an_older_card_does() -> None:
    (text,) = said("low_tiles", BIG16, BIG16, on="sm_90")["older-tensor-instruction"]
    assert text.endswith("(mma.sync), not wgmma: that takes tiles of 64 rows, and this one has 16.")
    assert "older-tensor-instruction" not in said("low_tiles", BIG16, BIG16, on="sm_80")


@pytest.mark.sample(4, of="machine code")
def test_two_warps_are_too_few_for_a_warp_group() -> None:
    (text,) = said("few_warps", BIG16, BIG16, on="sm_90")["older-tensor-instruction"]
    assert text.endswith("that takes groups of 4 warps, and num_warps is 2.")


@pytest.mark.sample(4, of="machine code")
def test_a_size_that_is_no_multiple_makes_loads_narrow_and_is_named_with_its_value() -> None:
    odd = said("copy", float16(4096, 1000))
    load = f"The load on line {line('load x')} moves 2 bytes at a time in each thread, where 16 fit: "
    store = f"The store on line {line('store out')} moves 2 bytes at a time in each thread, where 16 fit: "
    assert odd == {
        "narrow-load": [load + "N is 1000 and s0 is 1000, no multiples of 16."],
        "narrow-store": [store + "N is 1000, no multiple of 16."],
    }
    assert said("copy", float16(4096, 1024)) == {}


@pytest.mark.sample(4, of="machine code")
def test_an_address_that_is_no_multiple_is_named() -> None:
    (text,) = said("copy", float16(4096, 1024, offset=1))["narrow-load"]
    assert text.endswith("where 16 fit: the address of x is no multiple of 16.")


@pytest.mark.sample(4, of="machine code")
def test_elements_that_lie_apart_are_loaded_alone() -> None:
    (text,) = said("copy", float16(4096, 1024, stride=(2048, 2)))["narrow-load"]
    assert text.endswith("where 16 fit: neighbouring elements lie s1 = 2 elements apart.")


@pytest.mark.sample(4, of="machine code")
def test_a_narrow_load_without_a_known_reason_is_told_without_one() -> None:
    (text,) = said("swapped", float32(1 << 20))["narrow-load"]
    assert text == f"The load on line {line('both')} moves 4 bytes at a time in each thread, where 16 fit."


@pytest.mark.sample(4, of="machine code")
def test_a_load_of_two_bytes_that_feeds_a_dot_is_no_asynchronous_copy() -> None:
    kinds = said("matmul", float16(4096, 1000), float16(1000, 4096))
    (text,) = kinds["narrow-load"]
    assert text.startswith(f"The load on line {line('load a')} moves 2 bytes")
    assert text.endswith(
        "K is 1000 and sa is 1000, no multiples of 16; and an asynchronous copy takes at least 4, so this is none."
    )
    uses = {
        use.access.line: use for use in inspected("matmul", float16(4096, 1000), float16(1000, 4096)).facts.accesses
    }
    assert not uses[line("load a")].is_asynchronous and uses[line("load b")].is_asynchronous


@pytest.mark.sample(4, of="machine code")
def test_registers_that_do_not_suffice_are_told_with_the_line_that_spills_most() -> None:
    (text,) = said("crowded", BIG32, BIG32)["spills"]
    assert text.startswith("Registers do not suffice (255 for each thread): ")
    assert f"most of it on line {line('dot')} (" in text


@pytest.mark.sample(4, of="machine code")
def test_a_tile_that_is_too_large_for_shared_memory_cannot_be_launched() -> None:
    (text,) = said("too_large", BIG16, BIG16, on="sm_86")["does-not-fit"]
    assert text.startswith(
        "matmul_kernel cannot be launched on sm_86: a block needs 128 KiB of shared memory, and may have 99 KiB."
    )
    assert "does-not-fit" not in said("too_large", BIG16, BIG16, on="sm_80")


@pytest.mark.sample(4, of="machine code")
def test_fewer_programs_than_the_card_has_sms_are_told() -> None:
    (text,) = said("matmul", float16(512, 512), float16(512, 512))["few-programs"]
    assert (
        text
        == "Only 64 programs of matmul_kernel are launched for this input: 64 of the 108 SMs of an A100 can work at "
        "most."
    )


@pytest.mark.sample(4, of="machine code")
def test_float64_that_nobody_asked_for_is_found_on_its_line() -> None:
    assert said("tenth_in_float64", float32(1 << 20))["float64"] == [
        f"Line {line('wide')} computes in float64, although no input is float64."
    ]
    assert said("tenth", float32(1 << 20)) == {}


@pytest.mark.sample(4, of="machine code")
def test_what_cannot_be_compiled_for_a_card_is_a_sentence_with_the_compilers_reason() -> None:
    given = replace(BIG16, dtype="float8_e4m3fn")
    (text,) = said("matmul", given, given, on="sm_75")["not-compiled"]
    assert text.startswith("matmul_kernel cannot be compiled for sm_75: ") and "(at the stage " in text


@pytest.mark.sample(4, of="machine code")
def test_tensor_descriptors_move_whole_tiles_where_there_is_tma() -> None:
    for use in inspected("tiles", float16(4096, 64), on="sm_90").facts.accesses:
        assert use.width == 0 and use.is_asynchronous and not use.is_narrow
    assert {use.width for use in inspected("tiles", float16(4096, 64), on="sm_80").facts.accesses} == {2}


def test_every_kind_has_a_test_here() -> None:
    tested = Path(__file__).read_text(encoding="utf-8")
    assert [kind for kinds in KINDS for kind in kinds.split(", ") if f'"{kind}"' not in tested] == []


def test_a_program_with_nonsense_in_it_gives_no_facts_and_no_fault() -> None:
    kernel = Kernel("k", NONSENSE, {"num_warps": "many", "num_ctas": -1, "num_stages": None})
    launch = Launch("k", (1, 1, 1), (View(0, "float32", (1,), (1,)),))
    (found,) = inspect(Program((), {0: 4}, (launch,), (), "none", {"k": kernel}, "submission.py"), target("sm_80"))
    assert found.facts.failed == "ttir" and found.facts.dots == () and found.facts.asked_warps == 4
