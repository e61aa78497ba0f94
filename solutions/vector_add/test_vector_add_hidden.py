"""What staff check of vector_add beyond the public tests: long tensors, everything at once, one tensor given twice."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gradekit import assert_close, assert_inputs_unmodified, assert_memory_clean, points, public_tests, shaped, tensors

public = public_tests(__file__)

LONG = st.sampled_from([65_535, 65_536, 65_537, 131_072, 262_143, 300_007])


@points(10)
@settings(max_examples=15)
@given(pair=LONG.flatmap(lambda n: public.pairs(shaped([n], dtypes=public.DTYPES, layouts=public.PLAIN))))
def test_long_vectors(submission, pair):
    """Is right for hundreds of thousands of elements, whatever the second one's layout"""
    assert_close(submission.add(*pair), public.expected(*pair))


@points(10)
@given(pair=public.RANKS.flatmap(lambda rank: public.pairs(tensors(rank, dtypes=public.DTYPES, size=(1, 70)))))
def test_everything_at_once(submission, pair):
    """Dtypes, ranks, layouts and kinds of values all at once"""
    result = submission.add(*pair)
    assert_close(result, public.expected(*pair))
    assert_inputs_unmodified(result)


@points(5)
@given(x=public.RANKS.flatmap(lambda rank: tensors(rank, dtypes=public.DTYPES, size=(1, 50))))
def test_one_tensor_twice(submission, x):
    """Adds a tensor to itself"""
    assert_close(submission.add(x, x), public.expected(x, x))


@points(5, kind="memory")
@settings(max_examples=15)
@given(pair=LONG.flatmap(lambda n: public.pairs(shaped([n], dtypes=["float16"], layouts=public.PLAIN))))
def test_memory_of_long_vectors(submission, pair):
    """Stays inside of long tensors too"""
    assert_memory_clean(submission.add(*pair))
