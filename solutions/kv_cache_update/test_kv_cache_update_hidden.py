"""What staff check of kv_cache_update beyond the public tests: large heads, many sequences, views and ends at once."""

from hypothesis import given

from gradekit import assert_close, assert_memory_clean, calls, points, public_tests

public = public_tests(__file__)
LARGER = {"B": [1, 40], "H": [1, 8], "S": [1, 70], "D": [200, 256, 511, 513, 1024]}


@points(12)
@given(call=calls(public.UPDATE, sizes=LARGER, layouts=["contiguous", "offset", "every_second"], how={"at_most": 1 << 18}))
def test_larger_sizes(submission, call):
    """Is right for heads of up to 1024 elements"""
    assert_close(submission.kv_cache_update(*call), public.expected(*call))


@points(10)
@given(call=calls(public.UPDATE, sizes={"B": (1, 9), "H": (1, 5), "S": (1, 30), "D": (1, 130)}))
def test_everything_at_once(submission, call):
    """Any size, dtype and layout"""
    assert_close(submission.kv_cache_update(*call), public.expected(*call))


@points(8, kind="memory")
@given(call=calls(public.UPDATE, sizes={"B": [1, 5], "H": [1, 3], "S": [1, 2], "D": [3, 100]}, values={"positions": ["least", "most"]}))
def test_memory_at_both_ends(submission, call):
    """Stays inside the caches at their first place and their last"""
    assert_memory_clean(submission.kv_cache_update(*call))
