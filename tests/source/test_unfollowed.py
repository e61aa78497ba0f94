"""What host code decides by something that no traced size remembers is named with its line; what is followed is not."""

import pytest

from gradekit.assignment import get
from gradekit.inputs.calls import calls, domain_of, draws_of
from gradekit.program import View
from gradekit.source.unfollowed import host_text
from gradekit.submission.parsed_source import ParsedSource
from gradekit.unseen.host_branches import TracedForm
from gradekit.unseen.kernel_inputs import looked_up

TABLE = "SIZES = {4096: 8, 333: 4}\n\n\n"


def lines(body: str) -> list[int]:
    """The lines of a function's body that are named, its first line being 1."""
    text = "def f(x, n):\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    return [line - 1 for line, _ in host_text(text).unfollowed()]


@pytest.mark.parametrize("body", [
    "if str(n).endswith('777'):\n    n = n - 1", "n = n - (hash(n) % 7 == 3)", "n = 1 if n in {3, n} else 2",
    "while bin(n).count('1') == 7:\n    n = 1", "kernel[(n,)](x, BLOCK=int(n ** 0.5))",
    "if n > 9000 and n ** 0.5 % 1 == 0:\n    n = n - 1", "if 0.6 < p < 0.7:\n    n = n - 1",
    "y = [a for a in x if re.match('4+', repr(a))]", "scale = min(1 / (1 - p), 65504.0)",
])
def test_a_decision_by_what_sizes_become_is_named_with_its_line(body: str) -> None:
    assert lines(body) == [1]


@pytest.mark.parametrize("asked", [
    "torch.Size(x.shape).numel()", "len(range(n))", "len([None] * n)", "len(x.unbind())", "len(x.split(2))", "m.log2(n)",
    "isqrt(n)", "ctypes.c_int(n).value", "bytes(n)[0]", "torch.broadcast_shapes(x.shape, (1, 1))[0]", "getattr(x, 'numel')()",
    "id(x)", "os.environ.get('KEY')", "n.__hash__()", "next(COUNTER)", "globals()['n']",
])
def test_what_nobody_knows_to_keep_the_origin_of_a_size_is_named_however_it_is_written(asked: str) -> None:
    text = f"import ctypes, os, math as m\nfrom math import isqrt\ndef f(x, n):\n    if {asked} == 6:\n        n = 0\n"
    assert [line for line, _ in host_text(text).unfollowed()] == [4]


@pytest.mark.parametrize("asked", [
    "x.shape.numel()", "len(x.shape)", "math.prod(x.shape)", "x.dim()", "x.element_size()", "abs(n)", "min(x.shape)", "math.inf",
])
def test_what_keeps_it_is_not(asked: str) -> None:
    text = f"import math\ndef f(x, n):\n    if {asked} == 6:\n        n = 0\n"
    assert host_text(text).unfollowed() == []


def test_a_decision_is_named_where_it_is_made_and_not_where_the_text_is() -> None:
    assert lines("key = str(n)\nother = key\nif other == '777':\n    n = 0") == [3]


def test_a_decision_by_what_another_function_gives_is_named() -> None:
    text = "def odd(n):\n    return hash(n)\n\n\ndef f(n):\n    if odd(n) == 3:\n        return 0\n"
    assert [line for line, _ in host_text(text).unfollowed()] == [6]


def test_a_builtin_by_another_name_is_that_builtin() -> None:
    assert lines("s = str\nif s(n) == '777':\n    n = 0") == [2]


@pytest.mark.parametrize("body", [
    "if n % 251 == 250 or n > 4096:\n    n = 0", "scale = 1 / math.sqrt(n)\nkernel[(n,)](x, scale * n ** -0.5)",
    "for row in range(n):\n    kernel[(row,)](x)", "if x.data_ptr() % 16 == 0:\n    n = 0",
    "raise ValueError(f'{n} is too much')", "n = min(max(n, 16), 64)", "if 0 in x.shape:\n    n = 0", "block = TABLE[x.dtype]\nkernel[(n,)](x, block)",
    "if n not in {16, 32}:\n    n = 0", "few = [16, 32]\nif n in few:\n    n = 0", "y = {2: 'int16'}[x.element_size()]\nkernel[(n,)](y)", "scale = float(p)\nkernel[(n,)](x, scale)",
    "dims = [(n, 1)]\nif dims[-1][0] > 4:\n    dims[-1] = (2 * n, 1)",
])
def test_what_is_followed_or_decides_nothing_is_not_named(body: str) -> None:
    assert lines(body) == []


@pytest.mark.parametrize("given", ["triton.jit(kernel)", "triton.jit(do_not_specialize=['n'])(kernel)"])
def test_a_kernel_decides_nothing_on_the_host(given: str) -> None:
    """Decorated, or given to triton.jit"""
    text = "def kernel(n):\n    if str(n) == '3':\n        n = 0\n"
    for kernel in (f"@triton.jit\n{text}", f"{text}kernel = {given}\n"):
        assert host_text(kernel).unfollowed() == [] and [one.name for one in ParsedSource(kernel).kernels] == ["kernel"]
    assert host_text(text).unfollowed() != []


def test_sizes_that_stand_in_a_table_are_tried() -> None:
    draws = draws_of(calls(domain_of(get("softmax").tests)["softmax"]))
    assert draws is not None
    form = TracedForm("", "softmax", (View(0, "float32", (7, 7), (7, 1)),))
    made = [one.call[0].shape for one in looked_up(draws, [form], host_text(TABLE + "T = {(41, 13): 1}").keys)]
    assert (41, 13) in made and any(4096 in shape for shape in made) and any(333 in shape for shape in made)
