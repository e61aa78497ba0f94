"""A related call has tensors that lie as the first call's do."""

from pathlib import Path

import pytest

from gradekit.domain import load
from gradekit.inputs.spec import Input, normal
from gradekit.relations.relation import Relation, relations_of

MATMUL = load(Path(__file__).parents[2] / "assignments" / "matmul" / "domain.toml")["matmul"]


@pytest.mark.parametrize("relation", relations_of(MATMUL), ids=lambda relation: f"{relation.kind} {relation.name}")
def test_contiguous_tensors_stay_contiguous(relation: Relation) -> None:
    """... also where a part of them is taken: who ignores strides must pass the checks that have none"""
    other = relation.of((normal((5, 7)), normal((7, 6), seed=1)))
    assert other is not None
    assert all((arg.tensor() if isinstance(arg, Input) else arg).is_contiguous() for arg in other.args)


def test_strided_tensors_keep_their_strides() -> None:
    relation = next(one for one in relations_of(MATMUL) if (one.kind, one.name) == ("alone", "M"))
    other = relation.of((Input("float32", (5, 7), (9, 1), 2), normal((7, 6))))
    assert other is not None and (other.args[0].stride(), other.args[0].storage_offset()) == ((9, 1), 2)
