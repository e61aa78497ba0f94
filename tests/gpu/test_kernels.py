"""What Triton's launcher is told of a kernel that comes as IR, and how arguments reach it. Compiles; needs no card."""

import dataclasses
from pathlib import Path

import pytest
import torch
import triton

from gradekit.assignment import beside, get
from gradekit.compat.triton import launchable, target, without_descriptors
from gradekit.gpu import cuda_machine
from gradekit.gpu.inputs import make, make_set
from gradekit.gpu.server import kinds_of
from gradekit.inputs import value_kinds
from gradekit.inputs.spec import FLOATS, Input
from gradekit.inputs.value_kinds import PROFILES
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


# --- Inputs -----------------------------------------------------------------------------------------------------------


X = Input("float32", (64, 33), (33, 1))


def drawn(spec: Input, seed: int = 1) -> torch.Tensor:
    return make(spec, seed, "cpu")


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("dtype", (*FLOATS, "int32", "int8", "bool"))
def test_an_input_has_the_form_of_its_spec(profile: str, dtype: str) -> None:
    spec = dataclasses.replace(X, dtype=dtype, profile=profile)
    tensor = drawn(spec)
    assert (tensor.dtype, tensor.shape, tensor.stride()) == (getattr(torch, dtype), spec.shape, spec.stride)


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    assert torch.equal(drawn(X, 5), drawn(X, 5))
    assert not torch.equal(drawn(X, 5), drawn(X, 6))


def test_strides_and_offset_are_kept_and_what_lies_between_is_poison() -> None:
    spec = Input("float32", (4, 6), (10, 1), offset=3)
    tensor = drawn(spec)
    whole = tensor.as_strided((spec.storage_size,), (1,), 0)
    assert (tensor.stride(), tensor.storage_offset()) == ((10, 1), 3)
    assert tensor.isfinite().all()
    assert whole.isnan().sum() == whole.numel() - 24


def test_a_dimension_of_stride_zero_has_one_value_and_one_of_no_elements_none() -> None:
    tensor = drawn(Input("float32", (5, 7), (0, 1)))
    assert torch.equal(tensor[0], tensor[4])
    assert drawn(Input("float32", (0, 5), (5, 1))).shape == (0, 5)


def test_values_are_of_the_kind_that_the_spec_names() -> None:
    assert drawn(dataclasses.replace(X, profile="ones")).eq(1).all()
    assert 0.9 < drawn(X).std() < 1.1
    assert drawn(dataclasses.replace(X, profile="positive")).min() >= 0.125
    assert set(drawn(dataclasses.replace(X, profile="integers")).unique().tolist()) <= set(range(-8, 9))


@pytest.mark.parametrize("profile", [*PROFILES, "mask", "full"])
def test_a_kind_of_values_is_on_the_cpu_what_the_spec_has(profile: str) -> None:
    spec = dataclasses.replace(X, profile=profile)
    expected = dataclasses.replace(spec, seed=7).tensor()
    assert torch.equal(drawn(spec, 7).nan_to_num(1e9), expected.nan_to_num(1e9))
    assert drawn(spec, 7).data_ptr() != expected.data_ptr()  # a kernel that writes to it must not spoil the test's own


def test_sets_and_arguments_of_equal_specs_differ_and_one_spec_that_is_passed_twice_is_one_tensor() -> None:
    first, second = (make_set([X, dataclasses.replace(X)], number, "cpu") for number in range(2))
    assert not torch.equal(first[0], second[0]) and not torch.equal(first[0], first[1])
    x, y, *numbers = make_set([X, X, 3, 2.5, None, True], 4, "cpu")
    assert x is y and numbers == [3, 2.5, None, True]


def test_a_kind_of_an_assignment_is_made_where_the_assignment_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    beside(get("spmm").tests, "sparse")
    spec = Input("int32", (5,), (1,), profile="crow:4:9:ragged:3")
    here, texts = spec.tensor().clone(), kinds_of([spec, X, 3])
    monkeypatch.setattr(value_kinds, "_added", {})
    with pytest.raises(ValueError, match="there is no kind of values"):
        Input.from_json(spec.to_json())
    value_kinds.add_from(texts)
    assert torch.equal(make(Input.from_json(spec.to_json()), 7, "cpu"), here)
    assert kinds_of([spec]) == texts
