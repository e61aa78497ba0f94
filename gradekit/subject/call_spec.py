"""A call of the submission as data: what tells it from other calls, and the form in which it is traced.

    args         as the test gave them: Input specs, tensors, numbers, None
    arguments    the same as the tracer takes them: views of storages, and Scalars
"""

import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch

from gradekit.engine.memory import view_bytes
from gradekit.inputs.layouts import row_major
from gradekit.inputs.spec import Input, sharing, with_other_values
from gradekit.judge.contents import content
from gradekit.program import Argument, Scalar, View
from gradekit.reuse import SharedCache, shared
from gradekit.sandbox import MANY, Form, multiprocessors_for

CHANGED, AFTER, TWICE = "changed in place", "after another", "backward twice"
"""The ways of calling in which tensors have changed since an earlier call, and in which another call with tensors of
its own, or another backward pass, comes before, by their names in `gradekit.tracer.trace`."""


@dataclass(frozen=True, eq=False)
class CallSpec:
    """A call: `form` is how it is traced, `signature` tells that from others, and is the same in every process. Its
    `key` is the same in every process, and no other call's. Equal calls without tensors are one CallSpec (but for those
    that were forgotten); with a tensor, which may change, each is one of its own."""

    form: Form
    signature: str
    key: bytes


_specs: SharedCache[bytes, CallSpec] = shared()
_TELLING = tuple(field.name for field in fields(Input) if field.compare)
"""What tells the spec of a tensor from others; two that are one tensor from two that are equal, `sharing` does."""


def call_spec(
    entry: str, args: Sequence[Any], wanted: tuple[int, ...] = (), *, timed: bool = False, on_one_gpu: bool = False
) -> CallSpec:
    """The call `entry(*args)`, to be `timed` or not; or where gradients are `wanted` of the arguments at these
    positions, of `entry(*args[:-1])` and its backward pass, with the gradient of the result as the last of `args`.
    Calls whose costs are compared are `on_one_gpu`."""
    key = _key(entry, args, wanted, (timed, on_one_gpu))
    found = None if has_tensors(args) else _specs.get(key)
    if found is None:
        arguments = to_arguments(args)
        signature = repr((entry, arguments, wanted))
        count = MANY if timed or on_one_gpu else multiprocessors_for(arguments, signature)
        told = " timed" if timed else "" if count == MANY else f" with {count} multiprocessors"
        form = replace(_form(entry, arguments, wanted, count), is_timed=timed, is_exact=timed)
        found = CallSpec(form, signature + told, key)
        _specs.put(key, found)
    return found


def has_tensors(args: Sequence[Any]) -> bool:
    """Whether there are tensors among the arguments of a call, not only specs."""
    return any(isinstance(arg, torch.Tensor) for arg in args)


def _key(entry: str, args: Sequence[Any], wanted: tuple[int, ...], more: object) -> bytes:
    together = to_arguments(args) if has_tensors(args) else sharing(args)
    return hashlib.sha256(repr((entry, [*map(_told, args)], together, wanted, more)).encode()).digest()


def _told(arg: Any) -> Any:
    """What tells an argument from others: all that lies in a tensor's storage, for a kernel may read beside it."""
    if isinstance(arg, torch.Tensor):
        return content(view_bytes(arg)).digest
    return [getattr(arg, name) for name in _TELLING] if isinstance(arg, Input) else arg


def with_others(
    entry: str, args: Sequence[Any], wanted: tuple[int, ...], others: Sequence[Any], way: str
) -> tuple[CallSpec, tuple[Any, ...]]:
    """A call with these `args` and one with `others`, or another gradient of its result; and the arguments of both."""
    others = [replace(arg, name="an input of the other call") if isinstance(arg, Input) else arg for arg in others]
    own = len(args) - bool(wanted)
    end = own + len(others)
    given = (*args[:own], *others, *args[own:])
    arguments = to_arguments(given)
    multiprocessors = multiprocessors_for(arguments, repr((entry, arguments)))
    form = _form(entry, (*arguments[:own], *arguments[end:]), wanted, multiprocessors)
    form = replace(form, others=arguments[own:end], way=way, is_exact=False)
    return CallSpec(form, form.name, _key(entry, given, wanted, (way, own))), given


def another_upstream(spec: Input, turn: int) -> Input:
    """Another gradient of a result: normal numbers; in every second turn laid out otherwise."""
    if turn % 2:
        columns_first = tuple(2 * step for step in row_major(spec.shape[::-1])[::-1])
        spec = replace(spec, stride=columns_first if spec.is_contiguous else row_major(spec.shape), offset=0, base=0)
    return replace(spec, profile="normal", seed=spec.seed + 1)


def with_another_number(args: Sequence[Any], like: Sequence[Any], turn: int) -> list[Any]:
    """Arguments of another call: tensors with other elements, of kinds `like` those of a third, and one of the numbers,
    each in `turn`."""
    places = [place for place, arg in enumerate(args) if isinstance(arg, (int, float))]
    changed = places[turn % len(places) :][:1] if places else []
    is_other = [isinstance(arg, Input) or place in changed for place, arg in enumerate(args)]
    return [_another(arg, one) if its else arg for arg, one, its in zip(args, like, is_other, strict=False)]


def _another(arg: Any, like: Any) -> Any:
    """Other elements, of the kind of the other tensor's where both kinds depend on nothing else; another number."""
    if isinstance(arg, Input):
        kind = getattr(like, "profile", ":")
        return with_other_values(arg if ":" in arg.profile + kind else replace(arg, profile=kind))
    return _another_number(arg)


def with_other_numbers(form: Form) -> Iterator[Form]:
    """The call with each of its numbers replaced in turn."""
    for place, arg in enumerate(form.args):
        if isinstance(arg, Scalar) and isinstance(arg.value, (int, float)):
            other = Scalar(_another_number(arg.value), arg.dtype)
            yield replace(form, args=(*form.args[:place], other, *form.args[place + 1 :]))


def _another_number(value: float) -> float:
    """A number that may come in its place, and is neither 0 nor 1, with which operations change nothing."""
    if isinstance(value, bool):
        return not value
    return (value ^ 1 if value > 1 else 2 + value) if isinstance(value, int) else (value + 0.375) % 1


def to_arguments(args: Sequence[Any]) -> tuple[Argument, ...]:
    """The arguments of a call as the tracer takes them; no tensor is made for it. Tensors that share a storage, and
    specs of one base or that are the same object, become views of one storage: so `submission.add(x, x)` passes one
    tensor twice. Equal specs that were drawn apart are two tensors."""
    storages: dict[Any, int] = {}
    return tuple(
        _view(arg, storages.setdefault(_identity(arg), len(storages))) if isinstance(arg, (Input, torch.Tensor))
        else Scalar(arg) for arg in args
    )  # fmt: skip


def _form(entry: str, arguments: tuple[Argument, ...], wanted: tuple[int, ...], count: int) -> Form:
    if not wanted:
        return Form(entry, arguments, multiprocessors=count)
    *inputs, upstream = arguments
    assert isinstance(upstream, View)
    return Form(entry, tuple(inputs), wanted, upstream, count)


def _identity(arg: Input | torch.Tensor) -> Any:
    if isinstance(arg, Input):
        return arg.identity
    storage = arg.untyped_storage()
    return ("storage", storage.data_ptr()) if storage.nbytes() else id(arg)


def _view(arg: Input | torch.Tensor, storage: int) -> View:
    if isinstance(arg, Input):
        return arg.view(storage)
    dtype = str(arg.dtype).removeprefix("torch.")
    return View(storage, dtype, tuple(arg.shape), tuple(arg.stride()), int(arg.storage_offset()))


# --- the calls that a check is going to make, told from the first that it made ----------------------------------------
#
# A check does the same with every row of its design: it calls the entry with all arguments or the first of them, asks
# for the same gradients, and may give all tensors another dtype. A guess that is wrong costs time, and nothing else.

Call = tuple[Any, ...]


def expected_forms(seen: Mapping[str, Form], first: Call, others: Sequence[Call]) -> dict[str, Form]:
    """The forms of calls that a check is going to make with `others`, by their signatures, where it made those of
    `seen` with the `first`; in the order in which they will be wanted."""
    makers = [one for signature, form in seen.items() for one in _makers(form, first, signature)]
    specs = [make(call) for call in others for make in makers]
    return {spec.signature: spec.form for spec in specs}


def _makers(form: Form, first: Call, signature: str) -> list[Callable[[Call], CallSpec]]:
    """How a form came from the first call: from some of its arguments, floating tensors among them cast."""
    dtypes = [arg.dtype for arg in form.args if isinstance(arg, View) and "float" in arg.dtype]
    for dtype in (None, *dtypes[:1]):
        for count in range(len(first), 0, -1):
            make = functools.partial(_made, form, count, dtype)
            if (not form.wanted or isinstance(first[count - 1], Input)) and make(first).signature == signature:
                return [make]
    return []


def _made(form: Form, count: int, dtype: str | None, call: Call) -> CallSpec:
    floats = (dtype is not None and isinstance(arg, Input) and "float" in arg.dtype for arg in call[:count])
    args = [replace(arg, dtype=dtype) if is_float else arg for arg, is_float in zip(call, floats, strict=False)]
    return call_spec(form.entry, args, form.wanted)
