"""Claims about calls drawn from a domain: they are promised, their design covers, and a row is what Hypothesis would draw."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import find, given, settings

from gradekit.domain import EntryDomain, load
from gradekit.inputs.calls import calls, draws_of
from gradekit.inputs.classes import Sizes, classes
from gradekit.inputs.draws import Draws
from gradekit.inputs.spec import Input, overlapping
from tests.beside import beside

TEXTS = beside(__file__)

quiet = settings(database=None, deadline=None, max_examples=80, derandomize=True)
JOIN = TEXTS["join"]
ADD = load(Path(__file__).parents[2] / "assignments/vector_add/domain.toml")["add"]
DERIVE = {"derive": {"K": lambda names: names["N"] * 2 + (names["kind"] == "many")}}


@pytest.fixture(scope="module")
def join(tmp_path_factory: pytest.TempPathFactory) -> EntryDomain:
    file = tmp_path_factory.mktemp("domain") / "domain.toml"
    file.write_text(JOIN)
    return load(file)["join"]


def drawn(entry: EntryDomain, **said: Any) -> Draws:
    found = draws_of(calls(entry, **said))
    assert found is not None
    return found


def following(numbers: list[int]) -> Callable[[str, Sequence[Any]], Any]:
    """Picks by these numbers, as Hypothesis would."""
    left = iter(numbers)
    return lambda label, options: options[next(left)] if len(options) > 1 else options[0]


def test_a_call_has_its_arguments_in_order_and_its_tensors_agree(join: EntryDomain) -> None:
    @quiet
    @given(call=calls(join, how=DERIVE))
    def holds(call: tuple[Any, ...]) -> None:
        x, index, scale, y = call
        assert x.dtype == y.dtype and index.dtype == "int32"
        assert y.shape == (*x.shape[:-1], x.shape[-1] + 1)
        assert index.shape[0] in (2 * x.shape[-1], 2 * x.shape[-1] + 1)
        assert scale in (0.5, x.shape[-1] + 1)
        assert index.is_contiguous
        assert max(x.numel, y.numel) <= 1 << 16

    holds()


@pytest.mark.parametrize("strength", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_row_is_what_hypothesis_would_draw(join: EntryDomain, strength: int) -> None:
    draws = drawn(join, how=DERIVE)
    rows = list(enumerate(draws.design(strength)))
    for turn, row in rows[:: 1 + len(rows) // 40]:  # at most forty of them
        call, numbers = draws.call(row, turn)
        assert draws.picked(following(numbers)) == call


def test_every_level_of_every_factor_is_drawn_and_every_listed_size_run(join: EntryDomain) -> None:
    draws = drawn(join, sizes={"N": [1, 7, 512]}, how=DERIVE)
    rows = draws.design()
    for name, levels in draws.factors.items():
        assert {row[name] for row in rows} == set(levels), name
    assert {draws.call(row, turn)[0][0].shape[-1] for turn, row in enumerate(rows)} == {1, 7, 512}


def test_a_size_that_may_be_0_is_drawn_as_0_where_the_test_says_nothing(join: EntryDomain) -> None:
    draws = drawn(join, how=DERIVE)
    assert 0 in {draws.call(row, turn)[0][0].shape[-1] for turn, row in enumerate(draws.design())}


def test_sizes_that_are_too_large_together_are_not_combined(join: EntryDomain) -> None:
    draws = drawn(join, how={**DERIVE, "at_most": 5000})
    every = [draws.call(row, turn)[0] for turn, row in enumerate(draws.design())]
    assert max(arg.numel for call in every for arg in call if isinstance(arg, Input) and arg.dtype != "int32") <= 5000
    assert 3000 in {call[0].shape[-1] for call in every}


def test_the_gradient_of_the_result_comes_last(join: EntryDomain) -> None:
    draws = drawn(join, upstream=["normal"], layouts=["contiguous"], how=DERIVE)
    call, _ = draws.call(draws.design()[0], 0)
    assert call[-1].shape == call[0].shape and len(call) == 5


def test_two_tensors_may_be_one_where_that_is_asked_for() -> None:
    draws = drawn(ADD, layouts=["contiguous"], how={"aliases": ADD.aliases})
    every = [draws.call(row, turn)[0] for turn, row in enumerate(draws.design())]
    assert {x is y for x, y in every} == {True, False}


def test_two_tensors_of_other_shapes_are_never_one(join: EntryDomain) -> None:
    draws = drawn(join, layouts=["contiguous"], how={**DERIVE, "aliases": ("x y",)})
    assert not any(x.base or x is y for x, _, _, y in (draws.call(row, 0)[0] for row in draws.design()))


def test_two_tensors_at_one_address_may_have_other_steps_where_the_second_may_have_any() -> None:
    def alike(**how: Any) -> set[bool]:
        draws = drawn(ADD, how={"aliases": ADD.aliases}, **how)
        made = [draws.call(row, turn)[0] for turn, row in enumerate(draws.design())]
        pairs = [(x.tensor(), y.tensor()) for x, y in made if x.base and x.numel > 1]
        return {x.stride() == y.stride() for x, y in pairs if x.data_ptr() == y.data_ptr()}

    assert False in alike()
    assert False not in alike(layouts=["contiguous"])


def test_of_two_tensors_at_one_address_each_step_may_be_the_only_one_that_differs() -> None:
    draws = drawn(ADD, sizes={"...": [2, 3], "N": [3, 5]}, how={"aliases": ADD.aliases})
    made = [draws.call(row, turn)[0] for turn, row in enumerate(draws.design())]
    pairs = [(x.stride, y.stride) for x, y in made if x.base and x.offset == y.offset and len(x.shape) == 2]
    differing = {tuple(one != other for one, other in zip(*pair, strict=True)) for pair in pairs}
    assert {(True, False), (False, True)} <= differing


def test_a_matrix_and_its_transpose_may_be_two_arguments() -> None:
    draws = drawn(ADD, sizes={"...": [2, 3], "N": [3, 5]}, how={"aliases": ADD.aliases})
    made = [draws.call(row, turn)[0] for turn, row in enumerate(draws.design())]
    strides = [(x.stride, y.stride) for x, y in made if x.base and x.offset == y.offset]
    assert any(x[-2:] == y[-1:-3:-1] and x != y for x, y in strides)


def test_the_first_of_two_tensors_in_one_memory_may_lie_behind_the_second() -> None:
    first, second = overlapping(Input("float32", (3, 4), (4, 1)), -1)
    assert (first.offset, second.offset) == (1, 0) and first.base == second.base == 13


def test_a_failing_call_shrinks_to_the_smallest(join: EntryDomain) -> None:
    smallest = find(
        calls(join, how=DERIVE), lambda call: call[0].shape[-1] >= 33, settings=settings(quiet, max_examples=500)
    )
    assert (smallest[0].shape, smallest[0].dtype, smallest[0].profile) == ((33,), "float32", "ones")


@pytest.mark.parametrize(("said", "told"), [
    ({"sizes": {"M": 3}}, "no M"),
    ({"sizes": {"N": 30001}}, "not promised"),
    ({"layouts": {"z": ["contiguous"]}}, "no tensor z"),
    ({"values": {"x z": [("ones", "ones")]}}, "no tensor z"),
    ({"others": {"eps": [1]}}, "no eps"),
])
def test_what_the_domain_does_not_have_is_refused(join: EntryDomain, said: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        calls(join, **said)


def test_size_classes_share_no_size_and_end_with_the_largest() -> None:
    found = classes(0, 1100)
    assert [one.name for one in found] == ["0", "1", "2", "2**k", "2**k + 1", "2**k - 1", "prime", "most"]
    members = [size for one in found for size in one.members]
    assert len(members) == len(set(members)) and found[-1].members == (1100,)
    assert {1023, 1024, 1025, 7, 8, 9} <= set(members)


def test_every_size_can_be_drawn_and_a_smaller_one_by_a_smaller_number() -> None:
    sizes = Sizes(3, 40, classes(3, 40))
    assert {sizes[index] for index in range(len(sizes))} == set(range(3, 41))
    assert [sizes.index(size) for size in (3, 17, 40)] == [0, 14, 37]


def test_one_variant_of_a_layout_may_be_asked_for(join: EntryDomain) -> None:
    layouts = dict(drawn(join, layouts=["contiguous", "expanded:0"], how=DERIVE).layouts)
    assert layouts == {"x": ("contiguous", "expanded:0"), "index": ("contiguous",), "y": ("contiguous", "expanded:0")}


def test_a_misspelt_layout_is_refused_where_a_test_asks_for_it(join: EntryDomain) -> None:
    for said in (["transpose"], {"x": ["contiguous", "transpose:1"]}):
        with pytest.raises(ValueError, match="no layout 'transpose.*did you mean transposed"):
            calls(join, layouts=said, how=DERIVE)


def test_sizes_that_are_always_too_large_are_refused_and_not_drawn_from_nothing(join: EntryDomain) -> None:
    with pytest.raises(ValueError, match="join: these sizes make tensors of 30,001 elements; at_most is 5,000"):
        calls(join, sizes={"N": [30_000]}, how={**DERIVE, "at_most": 5000})


CONV = TEXTS["conv"]


@pytest.fixture(scope="module")
def conv(tmp_path_factory: pytest.TempPathFactory) -> EntryDomain:
    file = tmp_path_factory.mktemp("domain") / "domain.toml"
    file.write_text(CONV)
    return load(file)["conv"]


def test_optional_tensors_are_all_given_or_none_or_the_first_of_them(conv: EntryDomain) -> None:
    draws = drawn(conv)
    every = [draws.call(row, turn)[0] for turn, row in enumerate(draws.design())]
    assert {(call[2] is None, call[3] is None) for call in every} == {(False, False), (False, True), (True, True)}
    assert all(call[0] is not None and isinstance(call[4], int) for call in every)
    for turn, row in enumerate(draws.design()):
        call, numbers = draws.call(row, turn)
        assert draws.picked(following(numbers)) == call


def test_no_call_is_drawn_outside_of_the_limits(conv: EntryDomain) -> None:
    draws = drawn(conv)
    every = [draws.call(row, turn)[0] for turn, row in enumerate(draws.design())]
    assert all(call[1].shape[1] <= call[0].shape[0] for call in every)
    assert {300} <= {call[1].shape[1] for call in every} and {1} <= {call[0].shape[0] for call in every}

    @quiet
    @given(call=calls(conv))
    def holds(call: Any) -> None:
        assert call[1].shape[1] <= call[0].shape[0]

    holds()
