"""What gradekit expects of Triton's private names. Patches are tried in a process of their own (patched.py)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from gradekit.compat.triton import (
    TARGET,
    ASTSource,
    Autotuner,
    CompileTimeAssertionFailure,
    Lowering,
    definition_line,
    descriptor_arguments,
    launch_options,
    launcher_type,
    lower,
    machine_code,
    resource_usage,
    signature,
    target,
    tool,
)

ELF = b"\x7fELF"


@triton.autotune(configs=[triton.Config({"BLOCK": 32})], key=["n"])
@triton.jit
def copy(target_ptr, origin_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(origin_ptr + at, mask=at < n), 0)
    tl.store(target_ptr + at, total, mask=at < n)


@triton.jit
def never(BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.static_assert(BLOCK < 0, "never")


def source() -> ASTSource:
    types = {"target_ptr": "*fp32", "origin_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    return ASTSource(copy.fn, types, {"BLOCK": 256})


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernel's TTIR."""
    found = tmp_path_factory.mktemp("triton") / "copy.ttir"
    found.write_text(lower(source(), {})[0])
    return found


def test_a_kernel_is_lowered_to_text_with_places() -> None:
    text, options = lower(source(), {"num_warps": 8})
    assert "tt.func public @copy" in text and "test_triton.py" in text
    assert options.num_warps == 8


def test_nobody_who_grades_reads_that_a_default_of_triton_will_change() -> None:
    """In a process of its own: Triton says it once, where a kernel is lowered and the environment does not choose."""
    code = "from gradekit.tracer import child; child.warm_up()"
    chosen = {name: value for name, value in os.environ.items() if name != "TRITON_DEFAULT_FP_FUSION"}
    command = [sys.executable, "-W", "error:TRITON_DEFAULT_FP_FUSION", "-c", code]
    done = subprocess.run(command, env=chosen, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_options_that_machine_code_depends_on_are_told() -> None:
    options = launch_options(lower(source(), {"num_warps": 2, "maxnreg": 64})[1])
    assert (options["num_warps"], options["maxnreg"], options["launch_pdl"]) == (2, 64, False)
    assert {"num_stages", "num_ctas", "enable_fp_fusion", "launch_cooperative_grid"} <= options.keys()


@pytest.mark.parametrize("debug", [False, True])
def test_integers_that_overflow_are_found_where_somebody_debugs(debug: bool) -> None:
    assert ("overflow detected" in lower(source(), {"debug": debug, "sanitize_overflow": True})[0]) is debug


@triton.jit
def store_and_tell(target_ptr, flag_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(target_ptr + tl.arange(0, BLOCK), 1.0)
    tl.atomic_xchg(flag_ptr, 1)


def test_whether_atomics_wait_for_all_warps_is_what_the_machine_code_does(tmp_path: Path) -> None:
    types = {"target_ptr": "*fp32", "flag_ptr": "*i32", "BLOCK": "constexpr"}
    text, parsed = lower(ASTSource(store_and_tell, types, {"BLOCK": 256}), {"num_warps": 4})
    (tmp_path / "k.ttir").write_text(text)
    lowering = Lowering(str(tmp_path / "k.ttir"), target(90), {"num_warps": 4})
    for stage in ("ttir", "ttgir", "llir"):
        lowering.run(stage)
    ptx = lowering.run("ptx")
    between = ptx[ptx.rindex("st.global") : ptx.index("atom.global")]
    assert launch_options(parsed).get("atomics_wait", True) == ("bar.sync" in between)


def test_a_kernel_that_the_front_end_refuses_is_a_compilation_error() -> None:
    with pytest.raises(CompileTimeAssertionFailure) as raised:
        lower(ASTSource(never, {"BLOCK": "constexpr"}, {"BLOCK": 1}), {})
    assert isinstance(raised.value, triton.CompilationError) and raised.value.error_message == "never"


def test_the_text_says_which_arguments_the_kernel_takes(file: Path) -> None:
    assert signature(str(file)) == ["*f32", "*f32", "i32"]


def test_text_that_is_no_kernel_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (bad := tmp_path / "bad.ttir").write_text("module { tt.func public @k( }")
    with pytest.raises(RuntimeError):
        signature(str(bad))
    assert "bad.ttir" in capfd.readouterr().err


def test_stages_and_figures_are_those_of_the_whole_compiler(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    text, options = lower(source(), {})
    whole = triton.compile(source(), target=TARGET, options=vars(options))
    stages, metadata = machine_code(text, options)
    assert metadata["shared"] == whole.metadata.shared > 0
    assert stages["cubin"][:4] == whole.asm["cubin"][:4] == ELF
    assert stages.keys() <= whole.asm.keys() and stages["ttgir"].count("\n") == whole.asm["ttgir"].count("\n")
    assert 8 <= resource_usage(stages["cubin"])[0] <= 255


def test_a_kernel_is_lowered_stage_by_stage_for_any_gpu(file: Path) -> None:
    lowering = Lowering(str(file), target(80), {"num_warps": 2})
    texts = [str(lowering.run(stage)) for stage in ("ttgir", "llir", "ptx")]
    assert "ttg.num-warps" in texts[0] and "define" in texts[1] and ".target sm_80" in texts[2]
    assert lowering.run("cubin")[:4] == ELF
    assert lowering.metadata["num_warps"] == 2 and lowering.metadata["shared"] > 0


@pytest.mark.parametrize("name", ["cuobjdump", "nvdisasm"])
def test_triton_brings_the_tools_that_read_machine_code(name: str) -> None:
    assert os.access(tool(name), os.X_OK)


def test_the_target_is_hopper() -> None:
    assert (TARGET.backend, TARGET.arch, TARGET.warp_size) == ("cuda", 90, 32)


def test_the_line_of_a_definition_is_below_its_decorators() -> None:
    lines = Path(__file__).read_text().splitlines()
    assert lines[definition_line(copy.fn) - 1].startswith("def copy(")


def test_an_autotuned_kernel_shows_what_the_tracer_reads_of_it() -> None:
    assert isinstance(copy, Autotuner)
    assert [config.all_kwargs()["BLOCK"] for config in copy.configs] == [32]
    assert copy.arg_names == ["target_ptr", "origin_ptr", "n", "BLOCK"]
    assert (copy.reset_to_zero, copy.restore_value, copy.user_defined_pre_hook) == ([], [], False)
    assert all(callable(hook) for hook in (copy.prune_configs, copy.pre_hook, copy.post_hook, copy.fn.run))


def test_a_descriptor_is_its_pointer_sizes_and_strides_where_there_is_no_tma() -> None:
    x = torch.zeros(64, 32)
    found = descriptor_arguments(TensorDescriptor(x, [64, 32], [32, 1], [16, 16]), None)
    assert found[0] is x and found[1:5] == [64, 32, 32, 1] and found[-4:] == [64, 32, 32, 1]


@pytest.mark.parametrize(("kind", "word"), [("f32", "fp32"), ("*f16", "*f16"), ("tensordesc<f16>", "nvTmaDesc")])
def test_the_launcher_has_its_own_words_for_types(kind: str, word: str) -> None:
    assert launcher_type(kind) == word
