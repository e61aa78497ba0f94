"""Checks of giou_loss: boxes with and without padding, in three dtypes, and the gradient of pred."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given

from gradekit import (
    FLOATS,
    Input,
    assert_allocates,
    assert_close,
    assert_compiles,
    assert_inputs_unmodified,
    assert_memory_clean,
    assert_speed,
    at_least,
    beside,
    calls,
    domain_of,
    points,
    reference,
)

beside(__file__, "boxes")  # kinds of values
GIOU = domain_of(__file__)["giou_loss"]
PLAIN = ("contiguous",)
AROUND_BLOCKS = [1, 2, 31, 32, 33, 127, 128, 129, 255, 257, 1023, 1024, 1025, 1500, 70_000]
REAL = ("boxes", "boxes_between")  # what pred and targets hold
LEFT = ("boxes_left", "boxes_left_between")
FLAT = ("boxes_flat", "boxes_flat")
PADDED = ("boxes", "boxes_padded")
JUNK = ("boxes_junk", "boxes_gaps")  # padding, of both, holds numbers whose products are infinite
APART = ("boxes_even", "boxes_odd")  # no two sides coincide: there the gradient would not be unique
TINY = ("boxes_tiny", "boxes_tiny_odd")  # EPSILON stands for their areas; no gradient is asked for there
NO_BOX = ("boxes_junk", "boxes_none")
MET = ("boxes_met:0:{seed}", "boxes_met:1:{seed}")  # where they coincide: in no side, in some or in all
EPSILON = 1e-5


def sides(pred, targets):
    """Widths and heights [..., 2] for each pair of boxes: of both, their intersection and the box around them."""
    (low, high), (its_low, its_high) = pred.chunk(2, -1), targets.chunk(2, -1)
    inner = (torch.minimum(high, its_high) - torch.maximum(low, its_low)).clamp(min=0)
    outer = (torch.maximum(high, its_high) - torch.minimum(low, its_low)).clamp(min=0)
    return high - low, its_high - its_low, inner, outer


def areas(every):
    """What has these `sides`."""
    return [width * height for width, height in (each.unbind(-1) for each in every)]


def without_padding(pred, targets):
    """Both, in float32 at least, with boxes of no size where there is padding; and which boxes are real. All lefts lie
    together in memory, all tops and so on: steps take a fraction of the time."""
    wide = torch.promote_types(pred.dtype, torch.float32)
    real = targets[..., 3] > 0
    together = (t.to(wide).mT.contiguous().mT for t in (pred, targets))
    pred, targets = (t.where(real[..., None], torch.ones((), dtype=wide)) for t in together)
    return pred, targets, real


def real_boxes(targets):
    """How many there are, and 1 where there are none."""
    return (targets[..., 3] > 0).sum().clamp(min=1)


def total(pred, targets):
    """The sum of GIoU over the real boxes."""
    pred, targets, real = without_padding(pred, targets)
    own, its, inter, enclosing = areas(sides(pred, targets))
    union = own + its - inter
    giou = inter / union.clamp(min=EPSILON) - (enclosing - union) / enclosing.clamp(min=EPSILON)
    return (giou * real).sum()


def giou_loss(pred, targets):
    return total(pred, targets) / real_boxes(targets)


def size_on_the_way(pred, targets):
    """The terms of each GIoU without their signs, averaged as the result is."""
    count = real_boxes(targets)
    pred, targets, real = without_padding(pred, targets)
    own, its, inter, enclosing = areas(sides(pred, targets))
    terms = own + its + inter
    sizes = inter / (own + its - inter).clamp(min=EPSILON) * 3 + (enclosing + terms) / enclosing.clamp(min=EPSILON)
    return (sizes * real).sum() / count


def for_each_box(function, pred, targets):
    """What `function` gives [..., 4], for as many boxes at a time as a core's cache holds with all that they need."""
    some = zip(*(boxes.flatten(0, -2).split(1 << 13) for boxes in (pred, targets)), strict=True)
    return torch.cat([function(*boxes) for boxes in some]).reshape(pred.shape)


def gradient(pred, targets, upstream):
    of_each = upstream / real_boxes(targets)

    def of_some(pred, targets):
        leaf = pred.detach().requires_grad_()
        return torch.autograd.grad(total(leaf, targets), leaf, of_each)[0]

    return for_each_box(of_some, pred, targets)


def size_of_the_gradient(pred, targets, upstream):
    """The terms of each element without their signs: what moves the area, the intersection and the enclosing box."""
    of_each = upstream.abs() / real_boxes(targets)

    def of_some(pred, targets):
        pred, targets, real = without_padding(pred, targets)
        size, its, inner, outer = sides(pred, targets)
        own, its, inter, enclosing = areas((size, its, inner, outer))
        u, e = (own + its - inter).clamp(min=EPSILON), enclosing.clamp(min=EPSILON)
        by_union = (1 / e + 3 * inter / u**2)[..., None]
        by_inter = by_union + (1 / u)[..., None]
        by_outer = ((enclosing + own + its + inter) / e**2 + 1 / e)[..., None]
        across = by_union * size.flip(-1) + by_inter * inner.flip(-1) + by_outer * outer.flip(-1)
        return torch.cat([across, across], dim=-1) * real[..., None] * of_each

    return for_each_box(of_some, pred, targets)


size_on_the_way.signed = size_of_the_gradient.signed = True  # `reference` calls them with boxes as they are


def expected(pred, targets):
    return reference(giou_loss, pred, targets, scale=size_on_the_way)


def expected_gradient(pred, targets, upstream):
    return reference(gradient, pred, targets, upstream, scale=size_of_the_gradient, terms=1)


def either_side(pred, targets, upstream):
    """For `up_to`: a gradient between those a step to either side of pred is right."""
    pred, targets, upstream = (one.tensor().double() for one in (pred, targets, upstream))
    step = pred.abs().clamp(min=1) * 2.0**-45
    ends = torch.stack([gradient(pred + step, targets, upstream), gradient(pred - step, targets, upstream)])

    def chosen(results, wanted):
        (found,), (right,) = results, wanted
        if getattr(found, "shape", None) != right.native.shape or found.dtype != right.native.dtype:
            return results
        inside = (found >= ends.amin(0) - right.allowance) & (found <= ends.amax(0) + right.allowance)
        return [torch.where(inside, right.rounded, found)]

    return chosen


def assert_gradient(submission, call):
    """Raise unless the gradient is right: where sides coincide, either side's or between."""
    *pair, upstream = call
    may_meet = pair[0].profile.startswith("boxes_met")
    found = submission.giou_loss.gradient(*pair, upstream=upstream)
    assert_close(found, expected_gradient(*call), up_to=either_side(*call) if may_meet else None)


def eager(pred, targets):
    """The loss as the article has it: what the submission's time is measured against."""
    real = (targets[..., 3] > 0).to(pred.dtype)
    own, its, inter, enclosing = (each.prod(-1) for each in sides(pred, targets))
    union = own + its - inter
    giou = inter / union.clamp(min=EPSILON) - (enclosing - union) / enclosing.clamp(min=EPSILON)
    return (giou * real).sum() / real.sum().clamp(min=1)


def drawn(kinds, **said):
    """Calls whose pred and targets hold one of these pairs of kinds."""
    return calls(GIOU, values={"pred targets": kinds}, **said)


UPSTREAM = ("ones", "normal", "positive")
FEW_OR_MANY = {"N": [1, 2, 7, 32, 60, 2049]}
TRAINED = drawn([REAL, LEFT, PADDED, JUNK, MET], dtypes=["float32"], sizes=FEW_OR_MANY, layouts=PLAIN, upstream=UPSTREAM)
FEW_VIEWS = ("contiguous", "offset", "permuted", "expanded")
VIEWS = ("contiguous", "offset", "transposed", "permuted", "sliced_columns", "expanded")
ANY_VIEW = drawn([REAL, PADDED], sizes={"B": [1, 2, 8], "N": [1, 32, 80]}, layouts=VIEWS, upstream=["normal"])
BLOCKS = {"B": [1, 2, 5], "N": AROUND_BLOCKS}
SMALL = {"B": [1, 2, 8], "N": [1, 2, 16, 30]}


@points(10, handout="the sum of GIoU over the real boxes, divided by their number")
@given(call=drawn([REAL, LEFT, FLAT, TINY], dtypes=["float32"], layouts=PLAIN))
def test_contiguous_float32(submission, call):
    """Agrees with the formula on contiguous float32 boxes"""
    assert_close(submission.giou_loss(*call), expected(*call))


@points(10, handout="B and N are 1 or more")
@given(call=drawn([REAL], dtypes=["float32"], sizes=BLOCKS, layouts=PLAIN, how={"at_most": 1 << 19}))
def test_boundary_sizes(submission, call):
    """Is right around the size of a block of boxes"""
    assert_close(submission.giou_loss(*call), expected(*call))


@points(12, handout="A target whose bottom is <= 0 is padding")
@given(call=drawn([PADDED, JUNK], layouts=PLAIN))
def test_padding(submission, call):
    """Counts real boxes only, whatever lies in the others"""
    assert_close(submission.giou_loss(*call), expected(*call))


@points(12, handout="Arithmetic in the inputs' dtype")
@pytest.mark.parametrize("dtype", FLOATS)
@given(call=drawn([REAL, PADDED, LEFT], dtypes=["float32"], sizes={"B": [1, 8], "N": [16, 30, 2101]}, layouts=PLAIN))
def test_every_dtype(submission, dtype, call):
    """Takes float32, float16 and bfloat16, and gives a float32 number"""
    call = [replace(boxes, dtype=dtype) for boxes in call]
    assert_close(submission.giou_loss(*call), expected(*call))


@points(8, handout="Both may be any view")
@given(call=ANY_VIEW)
def test_any_stride_and_offset(submission, call):
    """Reads transposed, sliced and expanded views as they are"""
    assert_close(submission.giou_loss(*call[:2]), expected(*call[:2]))


@points(12, handout="it too moves with the sides of pred")
@given(call=TRAINED)
def test_gradient(submission, call):
    """The gradient of pred agrees with autograd's"""
    assert_gradient(submission, call)


@points(5, handout="The gradient has pred's shape and dtype")
@pytest.mark.parametrize("dtype", FLOATS)
@given(call=drawn([APART], dtypes=["float32"], sizes=SMALL, layouts=FEW_VIEWS, upstream=["normal"]))
def test_gradient_of_views(submission, dtype, call):
    """The gradient is right in every dtype, and for views"""
    *pair, upstream = (replace(tensor, dtype=dtype) if tensor.shape else tensor for tensor in call)
    assert_close(submission.giou_loss.gradient(*pair, upstream=upstream), expected_gradient(*pair, upstream))


@points(4, kind="structure", handout="or by 1 where there are none")
@given(call=drawn([NO_BOX], sizes={"B": [1, 2, 8], "N": [1, 2, 33, 40]}, layouts=PLAIN, upstream=UPSTREAM))
def test_nothing_but_padding(submission, call):
    """A batch of nothing but padding gives 0, and a gradient of 0"""
    *pair, upstream = call
    assert_close(submission.giou_loss(*pair), expected(*pair))
    assert_close(submission.giou_loss.gradient(*pair, upstream=upstream), expected_gradient(*call))


@points(5, kind="memory", handout="write one number for each box or for each program")
@given(call=ANY_VIEW)
def test_memory(submission, call):
    """Both passes stay inside their tensors; nobody writes to one place"""
    *pair, upstream = call
    assert_memory_clean(submission.giou_loss(*pair))
    assert_memory_clean(submission.giou_loss.gradient(*pair, upstream=upstream))


@points(7, kind="structure", handout="at most 12 bytes for each box")
@given(call=drawn([REAL], sizes={"B": [1, 8], "N": [1, 100, 256, 400]}, layouts=PLAIN))
def test_native_dtypes(submission, call):
    """Casts in registers: no copy of the inputs, nor changes to them"""
    result = submission.giou_loss(*call)
    boxes = call[0].numel // 4  # a copy of pred alone, in float32, would take 16 bytes for each
    assert_allocates(result, only_the_result=False, at_most_bytes=12 * boxes + 256)
    assert_inputs_unmodified(result)
    assert_close(result, expected(*call))


def boxes_of(batch, boxes, seed=0):
    return Input("float32", (batch, boxes, 4), (4 * boxes, 4, 1), 0, "boxes", seed)


@points(5, kind="structure", handout="use a torch.autograd.Function")
def test_in_a_model(submission):
    """A model with this loss compiles to one graph, backward too"""
    assert_compiles(submission.giou_loss.inspected(boxes_of(3, 70), boxes_of(3, 70, seed=1)))


@points(10, kind="speed", handout="what counts is the number of launches")
@pytest.mark.parametrize("batch", [32, 4096], ids=["32x256", "4096x256"])
def test_speed(submission, batch):
    """The forward pass is faster than torch's, on a GPU"""
    pair = boxes_of(batch, 256), boxes_of(batch, 256, seed=1)
    timed = submission.giou_loss.timed(*pair, against=eager, expected=expected)
    assert_speed(timed, at_least(1.5, "eager", some_from=1.0), at_least(0.9, "compiled", some_from=0.5))
