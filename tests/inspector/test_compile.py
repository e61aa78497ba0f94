"""The compiler's process: what it makes, and what it survives."""

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradekit.compat.triton import missing
from gradekit.inspector import compile as compiling
from gradekit.inspector.compile import CompileJob, compile_all
from gradekit.inspector.compiler import AMD_STAGES, STAGES, with_true_places
from gradekit.program import Kernel
from gradekit.sandbox import Unavailable

from .inspected import float16, program

NOTHING = "module {\n  tt.func public @nothing(%x: !tt.ptr<f32>) {\n    tt.return\n  }\n}\n"
GOOD = Kernel("nothing", NOTHING, {"num_warps": 4})


def test_a_kernel_is_compiled_for_every_architecture_without_a_card() -> None:
    (kernel,) = program("copy", float16(4096, 1024)).kernels.values()
    for found in compile_all([CompileJob(kernel, capability) for capability in (75, 80, 90, 100)]):
        assert tuple(found.stages) == STAGES and found.error == ""
        assert found.metadata["num_warps"] == 4 and "REG:" in found.usage


def test_a_kernel_is_compiled_for_amds_cards_without_a_card_and_without_rocm() -> None:
    (kernel,) = program("matmul", float16(4096, 1024), float16(1024, 1024)).kernels.values()
    (found,) = compile_all([CompileJob(kernel, "gfx942", until="amdgcn")])
    assert tuple(found.stages) == AMD_STAGES and found.error == ""
    assert "v_mfma_f32" in found.stages["amdgcn"] and found.metadata["shared"] > 0


@pytest.mark.parametrize(("name", "value", "job", "said"), [
    ("backends", {}, CompileJob(GOOD, "gfx942", "amdgcn"), "built without its backend for AMD"),
    ("tool", None, CompileJob(GOOD, 90), "ptxas, which NVIDIA's wheel of Triton brings, is missing"),
])
def test_what_this_triton_lacks_for_a_card_is_said(
    name: str, value: Any, job: CompileJob, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> str:
        raise RuntimeError(f"Cannot find {name}")

    monkeypatch.setattr(f"gradekit.compat.triton.{name}", absent if value is None else value)
    assert said in missing(job.arch, job.until)
    assert missing(90, "ptx") == ""


def test_a_compiler_that_is_missing_is_said_in_place_of_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "MODULE", "tests.inspector.without_amd")
    with pytest.raises(Unavailable, match="built without its backend for AMD"):
        compile_all([CompileJob(GOOD, "gfx942", "amdgcn")])


def test_a_crash_of_the_compiler_is_told_and_harms_no_other_kernel() -> None:
    good, crash, nonsense = compile_all(
        [CompileJob(GOOD, 90), CompileJob(Kernel("k", "module {}"), 90), CompileJob(Kernel("k", "?"), 90)]
    )
    assert good.error == "" and "sass" in good.stages
    assert (crash.failed, crash.error) == ("ttir", "the compiler crashed (SIGSEGV)")
    assert nonsense.failed == "ttir" and "Parse MLIR file failed" in nonsense.error and "/tmp" not in nonsense.error


def test_a_text_nested_too_deeply_is_a_crash_like_any_other() -> None:
    deep = Kernel("k", f"module attributes {{x = {'[' * 200_000}{']' * 200_000}}} {{}}")
    (found,) = compile_all([CompileJob(deep, 90)])
    assert found.failed == "ttir" and found.error


ENDLESS = """
import __main__, pathlib
def stages(source, job):
    yield "ttir", "kept"
    while True: pass
__main__.compiler._stages = stages
__main__.honest(pathlib.Path(folder), {"ttir": "", "arch": 90})
"""


def test_a_compilation_that_does_not_end_is_ended_and_keeps_the_stages_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "MODULE", "tests.inspector.captured")
    (found,) = compile_all([CompileJob(Kernel("k", ENDLESS), 90)], seconds=2)
    assert found.error == "the compiler did not finish in time"
    assert found.stages == {"ttir": "kept"} and found.failed == "ttgir"


def test_an_option_that_names_a_file_or_has_a_wrong_type_never_reaches_the_compiler() -> None:
    options = {
        "num_warps": 8, "num_stages": True, "ir_override": "/etc/passwd", "ptx_options": "--help", "maxnreg": "9",
    }
    assert compiling._request(CompileJob(Kernel("k", NOTHING, options), 90))["options"] == {"num_warps": 8}


def test_a_stage_may_be_the_last() -> None:
    (found,) = compile_all([CompileJob(GOOD, 90, until="ttgir")])
    assert tuple(found.stages) == ("ttir", "ttgir") and found.error == ""


def test_clusters_are_refused_for_cards_that_have_none() -> None:
    (found,) = compile_all([CompileJob(replace(GOOD, options={"num_warps": 4, "num_ctas": 2}), 80)])
    assert found.failed == "ttir" and "num_ctas" in found.error


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    compile_all([CompileJob(GOOD, 90, until="ttir")])
    assert os.listdir(tmp_path) == []


def test_a_link_in_place_of_a_stage_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "ttir").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "ptx")
    assert compiling._text(tmp_path / "ttir") == compiling._text(tmp_path / "ptx") == ""


def test_places_inside_of_inline_assembly_are_left_out() -> None:
    ptx = (
        "\t.loc\t1 20 9\n\t// begin inline asm\n\tmov.u32 %r1, %r5;\n\t.loc\t1 21 9\n"
        "\t@%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];\n\t// end inline asm\n\t.loc\t1 22 9\n"
    )
    kept = with_true_places(ptx)
    assert "1 21 9" not in kept and "1 20 9" in kept and "1 22 9" in kept and "ld.global.b32" in kept
