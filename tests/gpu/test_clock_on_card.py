"""Claims about the clock, torch's sides and the ceilings, on a card."""

import functools
from statistics import median

import pytest
import torch

from gradekit.gpu import Limit, baselines, ceilings
from gradekit.gpu.baselines import BaselineError
from gradekit.gpu.card import Card, find, read
from gradekit.gpu.contest import interleave
from gradekit.gpu.inputs import make_set
from gradekit.gpu.timing import Clock, sets_for
from gradekit.inputs.spec import Input, normal
from gradekit.judge.speed import ratio, settled

pytestmark = pytest.mark.gpu

X = normal((4096, 1000))


@pytest.fixture(scope="module")
def card() -> Card:
    """The card that there must be."""
    found = find("cuda")
    assert found is not None
    return found


def sets_of(spec: Input, card: Card) -> list[list[torch.Tensor]]:
    return [make_set([spec], number, card.device) for number in range(sets_for(card, 2 * spec.nbytes))]


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def clock_of(card: Card, spec: Input = X) -> Clock:
    return Clock([functools.partial(softmax, *inputs) for inputs in sets_of(spec, card)], card)


def typical(clock: Clock) -> float:
    return median(clock.turn(Limit.TURN_MS).seconds)


def test_inputs_are_the_same_bits_each_time_that_they_are_made(card: Card) -> None:
    first, again = (make_set([X, Input("int32", (100,), (1,))], 3, card.device) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


def test_the_outputs_of_the_timed_calls_are_those_of_their_own_sets(card: Card) -> None:
    sets, clock = sets_of(X, card), clock_of(card)
    clock.turn(1)
    assert len(clock.outputs) == len(sets)
    for (x,), found in zip(sets, clock.outputs, strict=True):
        torch.testing.assert_close(found, torch.softmax(x, -1))


def test_every_replay_computes_anew(card: Card) -> None:
    clock = clock_of(card)
    clock.turn(1)
    for output in clock.outputs:
        output.zero_()
    clock.turn(1)
    assert all(torch.allclose(output.sum(-1), torch.ones((), device=card.device)) for output in clock.outputs)


def test_a_call_that_moves_more_than_the_cache_takes_what_memory_allows(card: Card) -> None:
    best = ceilings.measure(card).bytes_per_second
    x = torch.ones(8 * card.l2_bytes // 4, device=card.device)
    moved = 2 * x.numel() * 4
    assert 0.5 < moved / typical(Clock([lambda: x + 1], card)) / best < 1.05


def test_inputs_that_would_fit_into_the_cache_are_read_from_memory(card: Card) -> None:
    spec = normal((card.l2_bytes // 16,))
    (x,) = make_set([spec], 0, card.device)
    warm = Clock([functools.partial(torch.amax, x)] * 8, card)
    cold = Clock([functools.partial(torch.amax, *s) for s in sets_of(spec, card)[:8]], card)
    assert typical(cold) > 1.15 * typical(warm)


def test_two_clocks_of_one_function_agree(card: Card) -> None:
    first, second = clock_of(card), clock_of(card)
    enough = settled({"eager": []})
    rounds = interleave({"student": lambda: first.turn(Limit.TURN_MS), "eager": lambda: second.turn(Limit.TURN_MS)}, enough)
    assert enough(rounds)
    assert ratio(rounds, "eager").value == pytest.approx(1.0, abs=0.01)


def test_a_turn_says_the_clocks_where_nvml_is_there(card: Card) -> None:
    turn = clock_of(card).turn(Limit.TURN_MS)
    assert len(turn.seconds) >= Limit.LEAST_REPLAYS
    if read(card) is not None:
        assert turn.before is not None and turn.before.sm_mhz > 0
        assert turn.after is not None and turn.after.sm_mhz > 0


def test_a_function_that_waits_for_the_card_is_timed_without_a_graph_and_says_so(card: Card) -> None:
    side = baselines.eager(lambda x: x * x.sum().item(), sets_of(X, card)[:2], card)
    assert side.clock.how == "stream"
    assert "launches included" in side.note
    assert all(seconds > 0 for seconds in side.clock.turn(Limit.TURN_MS).seconds)


def test_after_a_call_that_could_not_be_captured_others_are_captured_again(card: Card) -> None:
    baselines.eager(lambda x: x * x.sum().item(), sets_of(X, card)[:2], card)
    assert clock_of(card).how == "graph"


def test_a_compiled_side_fuses_and_its_compilation_is_not_timed(card: Card) -> None:
    def chain(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x * 2 + 1).mul(3).sub(1)

    sets = sets_of(X, card)
    eager, compiled = baselines.eager(chain, sets, card), baselines.compiled(chain, sets, card)
    assert typical(eager.clock) > 2 * typical(compiled.clock)
    assert compiled.compile_seconds > 100 * typical(compiled.clock)
    torch.testing.assert_close(compiled.clock.outputs[0], chain(*sets[0]))


def test_a_second_shape_is_compiled_for_itself(card: Card) -> None:
    seen: list[torch.Size] = []

    def counted(x: torch.Tensor) -> torch.Tensor:
        seen.append(x.shape)  # runs while torch.compile traces, and only then
        return x + 1

    with torch.cuda.device(card.device):
        for rows in (64, 128):
            baselines.compiled(counted, [make_set([normal((rows, 100))], 0, card.device)], card)
    assert {shape[0] for shape in seen} == {64, 128}


def test_a_reference_that_fails_is_an_error_in_torchs_words(card: Card) -> None:
    with pytest.raises(BaselineError, match="eager: RuntimeError: .*must match"):
        baselines.eager(lambda x: x + torch.ones(3, device=x.device), sets_of(X, card)[:2], card)


def test_ceilings_are_measured_once_and_are_plausible(card: Card) -> None:
    found = ceilings.measure(card)
    assert ceilings.measure(card) is found
    assert 1e10 < found.bytes_per_second < 1e14
    assert found.flops_per_second["float16"] > found.flops_per_second["float32"]
