"""What Triton's launcher is told of a kernel that comes as IR, and how arguments reach it. Compiles; needs no card."""

from pathlib import Path

import pytest
import triton

from gradekit.compat.triton import launchable, target, without_descriptors
from gradekit.gpu import cuda_machine
from gradekit.inputs.spec import Input
from gradekit.program import Descriptor, Kernel, Launch, ProgramError

from ..tracer.styles import Text
from .programs import traced

HOPPER, AMPERE = target(90), target(80)
DESCRIPTORS = Path(__file__).parents[1] / "course" / "right" / "matmul" / "host_descriptors.py"


def half(rows: int, cols: int) -> Input:
    return Input("float16", (rows, cols), (cols, 1))


@pytest.fixture(scope="module")
def with_descriptors() -> tuple[Kernel, Launch]:
    made, _ = traced(Text(DESCRIPTORS.read_text()), "matmul", half(64, 40), half(40, 48))
    (launch,) = made.launches()
    return made.kernels[launch.kernel], launch


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


def test_a_descriptor_and_its_sizes_are_one_argument_each(with_descriptors, cache: Path) -> None:
    kernel, launch = with_descriptors
    (file := cache / "k.ttir").write_text(kernel.ttir)
    made = launchable(triton.compile(str(file), target=HOPPER, options=kernel.compiler_options))
    block = ["nvTmaDesc", "i32", "i32", "i64", "i64"]
    assert list(made.src.signature.values()) == block * 3 + ["i32"]
    assert [meta["block_size"] for meta in made.descriptors] == [[32, 32]] * 3
    assert made.metadata.tensordesc_meta is None
    assert sum(isinstance(arg, Descriptor) for arg in launch.args) == 3


def test_an_older_card_is_given_pointers_for_descriptors(with_descriptors, cache: Path) -> None:
    kernel, _ = with_descriptors
    (file := cache / "k.ttir").write_text(kernel.ttir)
    text = without_descriptors(str(file), AMPERE, kernel.compiler_options)
    assert "tensordesc" in kernel.ttir and "tensordesc" not in text
    file.write_text(text)
    made = launchable(triton.compile(str(file), target=AMPERE, options=kernel.compiler_options))
    assert next(iter(made.src.signature.values())) == "*f16" and made.descriptors == []


def test_the_options_that_were_recorded_reach_the_compiler() -> None:
    recorded = {"num_warps": 8, "num_stages": 2, "maxnreg": 64, "enable_fp_fusion": False}
    assert Kernel("k", "", recorded).compiler_options == recorded


@pytest.mark.parametrize(
    "options",
    [{"ir_override": "/etc/passwd"}, {"extern_libs": {"a": "b"}}, {"num_warps": "8"}, {"num_warps": True},
     {"maxnreg": None}],
)  # fmt: skip
def test_other_options_do_not(options: dict[str, object]) -> None:
    assert Kernel("k", "", options).compiler_options == {}


def test_kernels_that_differ_in_an_option_are_two() -> None:
    first, second = Kernel("k", "text", {"num_warps": 4}), Kernel("k", "text", {"num_warps": 8})
    assert cuda_machine.key_of(first) != cuda_machine.key_of(second)


@pytest.mark.parametrize(("kind", "value", "given"), [
    ("i32", 3_000_000_000, 3_000_000_000 - 2**32), ("i32", -1, -1), ("i64", 2**63, -(2**63)), ("i8", 255, -1),
    ("i1", True, 1), ("i1", 0, 0), ("fp32", 1, 1.0), ("fp64", 0.5, 0.5), ("*f32", 4096, 4096),
])
def test_numbers_are_given_as_the_launcher_takes_them(kind: str, value: float, given: float) -> None:
    made = cuda_machine.number_for(kind, value)
    assert made == given and type(made) is type(given)


@pytest.mark.parametrize("value", [None, "text"])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(ProgramError):
        cuda_machine.number_for("i32", value)


@pytest.mark.parametrize("name", ["../../escape", "@/../x", "a/b", "x y"])
def test_a_kernel_whose_name_could_be_a_path_is_refused(name: str) -> None:
    found = cuda_machine._ENTRY.search(f'tt.func public @"{name}"(%x: i32)')
    assert found is None or not cuda_machine._SYMBOL.fullmatch(found[2])
