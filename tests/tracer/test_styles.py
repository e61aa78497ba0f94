"""Submissions in the style of the official tutorials are traced as they are, experiments included."""

import pytest

from gradekit.program import Argument, Choice, Descriptor, Launch, Scalar, decode, encode
from gradekit.sandbox import Tracer

from . import styles
from .helpers import kinds, only, tensor
from .styles import Text

MATRIX = tensor(0, 7, 33)
HALVES = [tensor(number, 1, 2, 128, 64, dtype="float16") for number in range(3)]


@pytest.mark.parametrize(("text", "entry", "args", "steps"), [
    (styles.VECTOR_ADD, "add", [tensor(0, 1000), tensor(1, 1000)], ["Allocate", "Launch"]),
    (styles.SOFTMAX, "softmax", [MATRIX], ["Allocate", "Launch"]),
    (styles.DROPOUT, "dropout", [tensor(0, 1000), Scalar(0.5), Scalar(123)], ["Allocate", "Launch"]),
    (styles.LAYER_NORM, "layer_norm", [MATRIX, tensor(1, 33), tensor(2, 33)], ["Allocate"] * 3 + ["Launch"]),
    (styles.ATTENTION, "attention", [*HALVES, Scalar(0.5)], ["Allocate", "Allocate", "Choice"]),
], ids=["vector add", "softmax", "dropout", "layer norm", "attention"])
def test_a_tutorial_style_submission_is_traced(text: Text, entry: str, args: list[Argument], steps: list[str]) -> None:
    with Tracer(text) as tracer:
        program = tracer.trace(entry, args)
    assert kinds(program.steps) == steps
    assert decode(encode(program)) == program
    lines = text.text.splitlines()
    source = program.steps[-1].source
    assert source is not None and "[" in lines[source.line - 1]


def test_only_the_reading_of_values_is_left_out() -> None:
    with Tracer(styles.VECTOR_ADD) as tracer:
        (note,) = tracer.load().notes
        assert "torch.allclose" in note
        assert "tensor(..., device='cuda:0', size=(98432,)" in tracer.output


def test_softmax_launches_as_many_programs_as_fit() -> None:
    with Tracer(styles.SOFTMAX) as tracer:
        launch = only(tracer.trace("softmax", [tensor(0, 5000, 781)]).steps, Launch)
    assert launch.grid[0] % 132 == 0 and 132 <= launch.grid[0] < 5000


def test_matmul_is_a_choice_of_its_configurations() -> None:
    with Tracer(styles.MATMUL) as tracer:
        program = tracer.trace("matmul", [tensor(0, 300, 64, dtype="float16"), tensor(1, 64, 500, dtype="float16")])
    choice = only(program.steps, Choice)
    assert [only(option, Launch).grid[0] for option in choice.options] == [5 * 8, 10 * 8]


def test_attention_shapes_its_descriptors_for_each_configuration() -> None:
    """The hook's block shapes are those of the option's own launch; configurations that assert are skipped"""
    with Tracer(styles.ATTENTION) as tracer:
        choice = only(tracer.trace("attention", [*HALVES, Scalar(0.5)]).steps, Choice)
    blocks = {}
    for label, option in zip(choice.labels, choice.options, strict=True):
        first = next(arg for arg in only(option, Launch).args if isinstance(arg, Descriptor))
        blocks[label.partition(",")[0]] = first.block
    assert blocks == {"BLOCK_M=64": (64, 64), "BLOCK_M=128": (128, 64)}
