"""Submissions written in the style of Triton's official tutorials, experiments at the top level included."""

from dataclasses import dataclass

from tests import right
from tests.beside import beside

TEXTS = beside(__file__)


@dataclass(frozen=True)
class Text:
    """A submission, as far as the tracer needs it."""

    text: str


def _right(path: str) -> str:
    """A right submission of the course in that style."""
    return right.text(right.FOLDER / path)


VECTOR_ADD = Text(_right("vector_add/tutorial.py").partition("\nif __name__")[0] + '''
assert torch.allclose(output_torch, output_triton)
benchmark.run(print_data=True, show_plots=True)
print(benchmark.fn(4096, 'triton'))
''')

SOFTMAX, MATMUL = Text(_right("softmax/tutorial.py")), Text(_right("matmul/tutorial.py"))

DROPOUT = Text("import tabulate\n" + right.text("solutions/dropout/right_tutorial.py") + '''

x = torch.randn(size=(10, ), device=triton.runtime.driver.active.get_active_torch_device())
output = dropout(x, p=0.5, seed=123)
print(tabulate.tabulate([["input"] + x.tolist(), ["output (seed = 123)"] + output.tolist()]))
''')
"""Seeded dropout; tabulate is not installed here."""

LAYER_NORM = Text(_right("layer_norm/locks.py") + TEXTS["layer_norm"])

ATTENTION = Text(TEXTS["attention"])
