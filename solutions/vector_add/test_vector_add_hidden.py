"""What staff check of vector_add beyond the public tests: long tensors, everything at once, one tensor given twice."""

from hypothesis import given

from gradekit import assert_close, assert_inputs_unmodified, assert_memory_clean, calls, points, public_tests

public = public_tests(__file__)

LONG = [65_535, 65_536, 65_537, 131_072, 262_143, 300_007]
SHORT = {"x": ["contiguous"], "y": ["contiguous", "offset", "every_second", "expanded"]}


@points(10)
@given(call=calls(public.ADD, sizes={"N": LONG}, layouts=SHORT, values=["normal"], how=public.FLAT))
def test_long_vectors(submission, call):
    """Is right for hundreds of thousands of elements, whatever the second one's layout"""
    assert_close(submission.add(*call), public.expected(*call))


@points(10)
@given(call=calls(public.ADD, sizes={"...": (1, 70), "N": (1, 70)}, how={"aliases": public.ADD.aliases}))
def test_everything_at_once(submission, call):
    """Dtypes, ranks, layouts and kinds of values all at once"""
    result = submission.add(*call)
    assert_close(result, public.expected(*call))
    assert_inputs_unmodified(result)


@points(5)
@given(call=calls(public.ADD, sizes={"...": (1, 50), "N": (1, 50)}, values=["normal", "integers"]))
def test_one_tensor_twice(submission, call):
    """Adds a tensor to itself"""
    assert_close(submission.add(call[0], call[0]), public.expected(call[0], call[0]))


@points(5, kind="memory")
@given(call=calls(public.ADD, dtypes=["float16"], sizes={"N": LONG}, layouts=SHORT, values=["normal"], how=public.FLAT))
def test_memory_of_long_vectors(submission, call):
    """Stays inside of long tensors too"""
    assert_memory_clean(submission.add(*call))
