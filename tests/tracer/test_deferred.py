"""Negation and conjugation that torch puts off until a tensor is read are never lost."""

import pytest

from gradekit.findings import Cause
from gradekit.program import View
from gradekit.sandbox import TraceError, Tracer
from tests.tracer.styles import Text

X = View(0, "float32", (4,), (1,))
Z = View(0, "complex64", (4,), (1,))
NEGATED = {
    "returned": "return torch._neg_view(x.clone())",
    "in a tuple": "return x.clone(), torch._neg_view(x.clone())",
    "a view of it": "return torch._neg_view(x.clone())[1:]",
    "cloned": "return torch._neg_view(x).clone()",
    "copied": "return torch.empty_like(x).copy_(torch._neg_view(x))",
    "made contiguous": "return torch._neg_view(x)[::2].contiguous()",
    "converted": "return torch._neg_view(x).to(torch.float64)",
    "written to": "y = torch.empty_like(x)\n    torch._neg_view(y).copy_(x)\n    return y",
    "filled": "y = torch.empty_like(x)\n    torch._neg_view(y).fill_(1.0)\n    return y",
    "marked by hand": "y = x.clone()\n    torch._C._set_neg(y, True)\n    return y",
}
CONJUGATED = {
    "returned": "return x.clone().conj()", "its imaginary part": "return x.clone().conj().imag",
    "cloned": "return x.conj().clone()",
    "marked by hand": "y = x.clone()\n    torch._C._set_conj(y, True)\n    return y",
}


def error(body: str, view: View) -> TraceError:
    with Tracer(Text(f"import torch\ndef entry(x):\n    {body}\n")) as tracer, pytest.raises(TraceError) as caught:
        pytest.fail(str(tracer.trace("entry", [view])))
    return caught.value


@pytest.mark.parametrize("body", [*NEGATED.values(), *CONJUGATED.values()], ids=[*NEGATED, *(f"conjugated {name}" for name in CONJUGATED)])
def test_a_negation_or_conjugation_that_is_put_off_is_computing_with_torch(body: str) -> None:
    found = error(body, Z if "conj" in body else X)
    assert found.cause is Cause.FORBIDDEN_OP and ("conjugated" in found.message or "negated" in found.message), found.message


def test_conjugating_real_numbers_is_nothing() -> None:
    with Tracer(Text("import torch\ndef entry(x):\n    return x.conj().clone().resolve_neg().mT.adjoint()\n")) as tracer:
        program = tracer.trace("entry", [View(0, "float32", (4, 3), (3, 1))])
    assert program.returned == "tensor"
