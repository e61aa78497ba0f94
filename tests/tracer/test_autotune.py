"""An autotuned launch is a choice of every configuration."""

import itertools

import pytest

from gradekit.findings import Cause
from gradekit.program import Choice, Fill, Launch, Scalar
from gradekit.sandbox import Form, TraceError, Tracer
from gradekit.tracer.autotune import MOST, in_turn

from .helpers import X, kinds, only, refused, submission, tensor, traced

KERNEL = """
        @triton.jit
        def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
            offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            {store}
        def entry(x):
            out = torch.{made}_like(x)
            kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
            {after}
            return out
"""
STORE = "tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)"
ADD = "tl.atomic_add(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)"
TWO = "triton.Config({'BLOCK': 32}, num_warps=1), triton.Config({'BLOCK': 64}, num_warps=2, num_stages=4)"


def body(decorators: str, store: str = STORE, made: str = "empty", after: str = "pass") -> str:
    return " " * 8 + decorators + KERNEL.format(store=store, made=made, after=after)


def test_every_configuration_is_an_option() -> None:
    program = traced(body(f"@triton.autotune([{TWO}], key=['n'])"), X)
    choice = only(program.steps, Choice)
    assert choice.source is not None and choice.source.function == "entry"
    assert [label.partition(",")[0] for label in choice.labels] == ["BLOCK=32", "BLOCK=64"]
    assert "num_warps=2" in choice.labels[1] and "num_stages=4" in choice.labels[1]
    launches = [only(option, Launch) for option in choice.options]
    assert [launch.grid for launch in launches] == [(4, 1, 1), (2, 1, 1)]
    assert [program.kernels[launch.kernel].options["num_warps"] for launch in launches] == [1, 2]


def test_one_configuration_is_no_choice() -> None:
    program = traced(body("@triton.autotune([triton.Config({'BLOCK': 32})], key=['n'])"), X)
    assert kinds(program.steps) == ["Allocate", "Launch"]


def test_a_hook_of_a_configuration_is_part_of_its_option() -> None:
    hooked = "triton.Config({'BLOCK': 32}, pre_hook=lambda args: args['out_ptr'].zero_()), triton.Config({'BLOCK': 64})"
    choice = only(traced(body(f"@triton.autotune([{hooked}], key=['n'])"), X).steps, Choice)
    assert kinds(choice.options[0]) == ["Fill", "Launch"] and kinds(choice.options[1]) == ["Launch"]


def test_configurations_are_pruned_as_triton_prunes_them() -> None:
    pruned = "prune_configs_by={'early_config_prune': lambda configs, args, **kw: configs[1:] if args['n'] > 50 else configs}"
    decorator = f"@triton.autotune([{TWO}], key=['n'], {pruned})"
    assert kinds(traced(body(decorator), X).steps) == ["Allocate", "Launch"]
    assert kinds(traced(body(decorator), tensor(0, 40)).steps) == ["Allocate", "Choice"]


def test_what_a_call_with_an_equal_key_could_have_chosen_is_an_option_too() -> None:
    pruned = "prune_configs_by={'early_config_prune': lambda configs, args, **kw: configs[1:] if args['n'] % 64 else configs}"
    without, with_n = (f"@triton.autotune([{TWO}], key={key}, {pruned})" for key in ("['x_ptr']", "['n']"))
    choice = only(traced(body(without), tensor(0, 40)).steps, Choice)
    assert [label.partition(",")[0] for label in choice.labels] == ["BLOCK=64", "BLOCK=32"]
    assert choice.labels[1].endswith("(which a call with another n may have chosen: the tuner's key lacks n)")
    assert kinds(traced(body(with_n), tensor(0, 40)).steps) == ["Allocate", "Launch"]


def test_a_configuration_that_asserts_against_itself_is_skipped() -> None:
    program = traced(
        body(f"@triton.autotune([{TWO}], key=['n'])", store="tl.static_assert(BLOCK == 64)\n            " + STORE), X
    )
    assert only(program.steps, Launch).grid == (2, 1, 1)


def test_no_configuration_that_works_is_an_error() -> None:
    error = refused(body(f"@triton.autotune([{TWO}], key=['n'])", store="tl.static_assert(BLOCK == 8)"), X)
    assert error.cause is Cause.COMPILATION_ERROR and "static_assert" in error.message


def test_a_broken_kernel_is_a_compilation_error() -> None:
    error = refused(body(f"@triton.autotune([{TWO}], key=['n'])", store="tl.store(out_ptr + offsetz, 1.0)"), X)
    assert error.cause is Cause.COMPILATION_ERROR and error.line == 14


def test_heuristics_and_autotune_stack_either_way() -> None:
    heuristics = "@triton.heuristics({'BLOCK': lambda args: 4 * args['WIDTH']})"
    tuned = "@triton.autotune([triton.Config({'WIDTH': 8}), triton.Config({'WIDTH': 16})], key=['n'])"
    kernel = KERNEL.replace("BLOCK: tl.constexpr", "WIDTH: tl.constexpr, BLOCK: tl.constexpr").format(
        store=STORE, made="empty", after="pass"
    )
    program = traced(f"{' ' * 8}{tuned}\n{' ' * 8}{heuristics}{kernel}", X)
    grids = [only(option, Launch).grid[0] for option in only(program.steps, Choice).options]
    assert grids == [4, 2]


def test_a_kernel_that_adds_to_memory_also_meets_its_first_call() -> None:
    """While it is tuned, every configuration adds once more: that call is an option of its own"""
    choice = only(traced(body(f"@triton.autotune([{TWO}], key=['n'])", store=ADD, made="zeros"), X).steps, Choice)
    assert "first call" in choice.labels[-1] and len(choice.options) == 3
    assert kinds(choice.options[-1]) == ["Launch"] * 3


def test_reset_to_zero_is_part_of_the_first_call_alone() -> None:
    decorator = f"@triton.autotune([{TWO}], key=['n'], reset_to_zero=['out_ptr'])"
    choice = only(traced(body(decorator, store=ADD), X).steps, Choice)
    assert [kinds(option) for option in choice.options[:2]] == [["Launch"], ["Launch"]]
    assert kinds(choice.options[2]) == ["Fill", "Launch", "Fill", "Launch", "Fill", "Launch"]
    assert all(step.value == 0 for step in choice.options[2] if isinstance(step, Fill))


def test_restore_value_restores_in_the_first_call() -> None:
    decorator = f"@triton.autotune([{TWO}], key=['n'], restore_value=['out_ptr'])"
    first = only(traced(body(decorator, made="zeros"), X).steps, Choice).options[2]
    assert kinds(first) == ["Allocate", "Copy", "Launch", "Copy"] * 2 + ["Launch"]


def test_asking_for_the_best_configuration_settles_on_the_first() -> None:
    program = traced(
        body(f"@triton.autotune([{TWO}], key=['n'])", after="assert kernel.best_config.kwargs['BLOCK'] == 32"), X
    )
    assert kinds(program.steps) == ["Allocate", "Launch"]
    assert only(program.steps, Launch).args[2] == Scalar(100, "i32")


MANY_BLOCKS = (
    "@triton.autotune([triton.Config({'BLOCK': 16 << i % 4}, num_warps=1 << i // 4) for i in range(20)], key=['n'])"
)


def labels(tracer: Tracer, size: int, is_timed: bool = False) -> tuple[str, ...]:
    program = tracer.trace_form(Form("entry", (tensor(0, size),), is_timed=is_timed))
    return only(program.steps, Choice).labels


def test_many_configurations_have_their_turns_in_calls_of_other_forms() -> None:
    """Twenty configurations: a call has at most eight of them, forty calls have all, and a call has the same again"""
    with Tracer(submission(body(MANY_BLOCKS))) as tracer:
        seen = [labels(tracer, size) for size in range(1, 41)]
        assert max(map(len, seen)) <= MOST // 2
        assert len({*itertools.chain(*seen)}) == 20
        assert labels(tracer, 7) == seen[6]
        assert len(labels(tracer, 7, is_timed=True)) == 20, "the card picks the fastest of all"


@pytest.mark.parametrize("count", [1, MOST, MOST + 1, 2 * MOST + 1, 100])
def test_each_configuration_has_its_turn(count: int) -> None:
    """Up to 16 in each call, more in turns of at most eight, more than 32 of at most four"""
    configs = list(range(count))
    turns = [in_turn(configs, turn) for turn in range(200)]
    assert sorted({*itertools.chain(*turns)}) == configs
    assert max(map(len, turns)) <= (count if count <= MOST else MOST // 2 if count <= 2 * MOST else MOST // 4)
    assert in_turn(configs, None) == configs


def test_proofs_leave_launches_of_many_configurations_open() -> None:
    with Tracer(submission(body(MANY_BLOCKS))) as tracer:
        with pytest.raises(TraceError, match="no more than 16 configurations"):
            tracer.follow(Form("entry", (tensor(0, 7),)))
        assert len(labels(tracer, 7)) <= MOST // 2


@pytest.mark.parametrize("configurations", ["triton.Config({'BLOCK': 32})", TWO])
@pytest.mark.parametrize("given", ["num_warps", "num_stages", "BLOCK"])
def test_what_a_launch_and_its_configurations_give_is_named(configurations: str, given: str) -> None:
    """Triton passes on both, which is Python's error; options have values where a configuration names none"""
    text = body(f"@triton.autotune([{configurations}], key=['n'])").replace("x.numel())\n", f"x.numel(), {given}=2)\n")
    error = refused(text, X)
    assert error.cause is Cause.EXCEPTION and f"Conflicting meta-parameters: {given}." in error.message
    assert "leave them out of the launch" in error.message
