"""One call of the entry function, on tensors without data, as a Program."""

import contextlib
import difflib
import inspect
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from gradekit.compat.torch import without_symbolic_shapes
from gradekit.compat.triton import JITFunction
from gradekit.origins import Explored, Origins
from gradekit.program import ITEMSIZE, Argument, Program, Scalar, View
from gradekit.tracer.aten import StepRecorder
from gradekit.tracer.autotune import Tuning
from gradekit.tracer.cuda import patched
from gradekit.tracer.errors import Refusal, refusal
from gradekit.tracer.kernels import Compiler
from gradekit.tracer.loading import LoadedModule
from gradekit.tracer.mask import CudaMask
from gradekit.tracer.origin_trace import Exploring, Following, both, bound_arguments
from gradekit.tracer.recorder import Recorder, dtype_name
from gradekit.wire import ForkedCache


class CallTracer:
    """The modes and the recorder of one submission, and the calls that are traced with them."""

    def __init__(self, path: str, told: ForkedCache | None = None) -> None:
        self.recorder = Recorder(path)
        self.compiler = Compiler(self.recorder, told)
        self.compiler.install()
        self.tuning = Tuning(self.recorder, self.compiler)
        self.tuning.install()
        torch.UntypedStorage.data_ptr = lambda storage: self.recorder.address_of(storage)  # type: ignore[assignment,method-assign]
        self.mask = CudaMask(self.recorder)
        self.steps = StepRecorder(self.recorder, lambda: self.mask)

    def call(
        self, loaded: LoadedModule, entry: str, args: Sequence[Argument], wanted: Sequence[int] = (),
        upstream: View | None = None, others: Sequence[Argument] = (), way: str = "",
    ) -> Program:  # fmt: skip
        """The program of `entry(*args)`, called in this `way`; where gradients are `wanted` of the arguments at these
        positions, of its backward pass too. With `others`, whose tensors are inputs too, `entry(*others)` is called
        between the two, or before both, or as `_changed` says; or the first of two backward passes is given them.

        With a backward pass, the last input is the gradient of the result, laid out as `upstream` says (contiguous
        where it is None); the results are the gradients, None where there is none. Raises Refusal where there is no
        such function, it does not take these arguments, or it fails; or its result does not depend on a wanted argument
        differentiably."""
        by_keyword = not wanted and bool(zlib.crc32(repr(args).encode()) % 2)
        function = find_entry(loaded, entry, len(args), by_keyword)
        inputs, values = self._begin(args, wanted)
        with self._refusing(loaded, f"in the backward pass of {entry}" if wanted else f"in {entry}"):
            if way == CHANGED:
                values = self._changed(function, args, values, others, wanted, inputs)
            if way == AFTER:
                self._forward(function, others, wanted, inputs)
            if way == OFTEN:
                del inputs, values  # what the caller holds is not kept by the submission
                inputs, values = self._called_often(function, args)
            if not wanted:
                with forward_mode(way, values), self.mask, self.steps:
                    result = function(*values)
                return self._program(inputs, result)
            leaves = [values[position].requires_grad_() for position in wanted]
            with self.mask, self.steps:
                result = _differentiable(function(*derived(way, values, wanted)), entry)
            other = self._forward(function, others, wanted, inputs) if others and not way else None
            earlier = self._given(others)[0] if way == TWICE else []
            inputs += [*earlier, self._upstream(result, upstream, args)]
            with self.mask, self.steps, without_symbolic_shapes():
                for position in wanted if way == APART else ():
                    one_gradient(function, values, position, inputs[-1])
                for each in earlier:
                    torch.autograd.grad(result, leaves, each, allow_unused=True, retain_graph=True)
                gradients = torch.autograd.grad(result, leaves, inputs[-1], allow_unused=True)
            del other  # it lived until here, as in a model that uses the entry twice
            return self._program(inputs, gradients)

    @contextlib.contextmanager
    def _refusing(self, loaded: LoadedModule, where: str) -> Iterator[None]:
        with self._one_call():
            try:
                yield
            except BaseException as error:  # noqa: BLE001  (a submission may raise anything)
                raise loaded.explain(refusal(error, loaded.path, where)) from None

    @contextlib.contextmanager
    def _one_call(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.steps.around = lambda: self.mask
            self.recorder.finish()

    def follow(
        self, loaded: LoadedModule, entry: str, args: Sequence[Argument], wanted: Sequence[int]
    ) -> tuple[Program, Origins]:
        """The program of `entry(*args)` and the origins of its numbers; where gradients are `wanted`, of it and its
        backward pass. It is a program to learn from and not one to run: sizes are not quite ints in it. Raises Refusal
        as `call` does."""
        function = find_entry(loaded, entry, len(args))
        inputs, values = self._begin(args, wanted)
        following = Following(self.recorder, self.mask)
        with self._refusing(loaded, f"in {entry}"):
            result = self._followed(following, function, args, inputs, values, wanted)
            return self._program(inputs, result, following.notice), following.origins

    def _followed(
        self, following: Following, function: Any, args: Sequence[Argument], inputs: list[torch.Tensor],
        values: list[Any], wanted: Sequence[int], upstream: View | None = None,
    ) -> Any:  # fmt: skip
        """The result of a call whose numbers are followed, or the gradients of the arguments at `wanted`."""
        leaves = [values[position].requires_grad_() for position in wanted]
        following.inputs(inputs)
        values = [following.scalar(position, value) for position, value in enumerate(values)]
        self.steps.around = lambda: both(self.mask, following)
        with self.mask, self.steps, following, following.launching():
            result = function(*values)
        if not wanted:
            return result
        result = _differentiable(result, "the entry")
        geometry = following.of(result)
        inputs.append(self._upstream(result, upstream, args))
        following.like(inputs[-1], geometry, len(inputs) - 1)
        with self.mask, self.steps, following, following.launching(), without_symbolic_shapes():
            return torch.autograd.grad(result, leaves, inputs[-1], allow_unused=True)

    def explored(
        self, loaded: LoadedModule, entry: str, args: Sequence[Argument], wanted: Sequence[int],
        upstream: View | None = None,
    ) -> Explored:  # fmt: skip
        """What host code compares in a call whose kernels are not compiled, up to where it fails without their results,
        if it does: for the grader to learn where to look. Raises Refusal where there is no such function, or it does
        not take these arguments."""
        function = find_entry(loaded, entry, len(args))
        inputs, values = self._begin(args, wanted)
        exploring, whole = Exploring(self.recorder, self.mask), False
        loaded.asked.clear()
        with self._one_call(), contextlib.suppress(Exception):  # more fails where kernels give nothing
            self._followed(exploring, function, args, inputs, values, wanted, upstream)
            whole = True
        table = exploring.table
        origins = Origins(tuple(tuple(term) for term in table.terms), tuple(table.conditions))
        left = dict.fromkeys(asked[:2] for asked in loaded.asked)
        return Explored(origins, tuple(exploring.launched), tuple(left), whole)

    def instructions(self, loaded: LoadedModule, entry: str, args: Sequence[Argument]) -> int:
        """How many instructions of the submission a call executes, without its kernels; 0 for one that fails. Raises
        Refusal where there is no such function, or it does not take these arguments."""
        function = find_entry(loaded, entry, len(args))
        _, values = self._begin(args)
        executed = Counter[str]()
        with self._one_call(), contextlib.suppress(Exception):
            with self.mask, self.steps, _unlaunched(), _counting(loaded.path, executed):
                function(*values)
            return executed.total()
        return 0

    def _forward(
        self, function: Any, args: Sequence[Argument], wanted: Sequence[int], inputs: list[torch.Tensor]
    ) -> Any:
        """The result of one more call, with tensors of its own, which are inputs of the same program."""
        more, values = self._given(args, wanted)
        inputs += more
        for position in wanted:
            values[position].requires_grad_()
        with self.mask, self.steps:
            return function(*values)

    def _changed(
        self, function: Any, args: Sequence[Argument], values: list[Any], others: Sequence[Argument],
        wanted: Sequence[int], inputs: list[torch.Tensor],
    ) -> list[Any]:  # fmt: skip
        """The arguments of a call in which each tensor is the very one that had the values of `others` in a call
        before, and into which its own were copied since, as an optimizer changes weights. What is no tensor in `others`
        stays as it is, but for a tensor, which the entry may write: the call before has a copy of it."""
        more, before = self._given(others, wanted)
        inputs += more
        pairs = [*zip(args, values, strict=True)]
        with self.mask, self.steps, torch.no_grad():
            bases = {arg.storage: _whole(value).clone() for arg, value in pairs if isinstance(arg, View)}
        made = [_tensor(arg, bases) if isinstance(arg, View) else value for arg, value in pairs]
        changed = [place for place, other in enumerate(before) if isinstance(other, torch.Tensor)]
        self._copy_into([made[place] for place in changed], [before[place] for place in changed])
        for position in wanted:
            made[position].requires_grad_()
        with self.mask, self.steps:
            function(*made)
        self._copy_into([made[place] for place in changed], [values[place] for place in changed])
        return [one if place in changed else value for place, (one, value) in enumerate(zip(made, values, strict=True))]

    def _called_often(self, function: Any, args: Sequence[Argument]) -> tuple[list[torch.Tensor], list[Any]]:
        """The arguments of one more call, once it was made until no further one leaves more results that the caller has
        given up: a ring of results that are kept then begins anew."""
        kept, most, in_vain = set[int](), 0, 0
        for _ in range(MOST_KEPT_RESULTS):
            _, values = self._begin(args)
            with self.mask, self.steps:
                result = function(*values)
            kept |= {view.storage for view in self._results(result)[1] if isinstance(view, View)}
            del values, result
            self.recorder.finish()
            kept = self.recorder.remembered(kept)
            in_vain = 0 if len(kept) > most else in_vain + 1
            most = max(most, len(kept))
            if in_vain == CALLS_IN_VAIN:
                break
        return self._begin(args)

    def _copy_into(self, tensors: Sequence[torch.Tensor], origins: Sequence[torch.Tensor]) -> None:
        with self.mask, self.steps, torch.no_grad():
            for tensor, origin in zip(tensors, origins, strict=True):
                _whole(tensor).copy_(_whole(origin))

    def _upstream(self, result: torch.Tensor, upstream: View | None, args: Sequence[Argument]) -> torch.Tensor:
        if upstream is None:
            number = 1 + max(arg.storage for arg in args if isinstance(arg, View))
            contiguous = torch.empty(result.shape, device="meta").stride()
            upstream = View(number, dtype_name(result.dtype), tuple(result.shape), contiguous)
        (tensor,) = make_arguments([upstream])
        self.recorder.input(tensor, upstream.storage)
        return tensor

    def _begin(self, args: Sequence[Argument], wanted: Sequence[int] = ()) -> tuple[list[torch.Tensor], list[Any]]:
        self.recorder.begin()
        return self._given(args, wanted)

    def _given(self, args: Sequence[Argument], wanted: Sequence[int] = ()) -> tuple[list[torch.Tensor], list[Any]]:
        """The tensors among the arguments, which are inputs of the program, and all arguments."""
        values = make_arguments(args, wanted)
        inputs = []
        for arg, value in zip(args, values, strict=True):
            if isinstance(arg, View):
                self.recorder.input(value, arg.storage)
                inputs.append(value)
        return inputs, values

    def _program(self, inputs: Sequence[torch.Tensor], result: Any, notice: Any = None) -> Program:
        kind, results = self._results(result)
        return self.recorder.program(inputs, results, kind, self.compiler.kernels, notice)

    def _results(self, result: Any) -> tuple[str, list[Argument]]:
        if result is None:
            return "none", []
        if isinstance(result, torch.Tensor):
            return ("tensor", [self.recorder.view(result)]) if result.is_meta else ("cpu tensor", [])
        if isinstance(result, (bool, int, float)):
            return type(result).__name__, [Scalar(result)]
        if isinstance(result, (tuple, list)):
            parts = [self._results(item) for item in result]
            return "tuple", [found[0] if found else Scalar(None) for _, found in parts]
        return type(result).__name__, []


def _unlaunched() -> contextlib.AbstractContextManager[None]:
    def run(jit: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
        if callable(grid):
            grid(bound_arguments(jit, args, kwargs))

    return patched(JITFunction, run=run)


@contextlib.contextmanager
def _counting(path: str, executed: Counter[str]) -> Iterator[None]:
    """While open, instructions of the file at `path` that are executed are counted."""

    def local(frame: Any, event: str, argument: Any) -> Callable[..., Any]:
        if event == "opcode":
            executed[path] += 1
        return local

    def entered(frame: Any, event: str, argument: Any) -> Callable[..., Any] | None:
        if frame.f_code.co_filename != path:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return local

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        yield
    finally:
        sys.settrace(before)


def _differentiable(result: Any, entry: str) -> torch.Tensor:
    """The tensor to differentiate: the first result. Raises Refusal where nothing leads from it to the inputs."""
    several = isinstance(result, (tuple, list))
    first = next((item for item in result if isinstance(item, torch.Tensor)), None) if several else result
    if isinstance(first, torch.Tensor) and first.requires_grad:
        return first
    raise Refusal(
        "exception",
        f"`{entry}` is not differentiable: its result has no grad_fn. Launch the kernels in the `forward` of a "
        "torch.autograd.Function, write its `backward`, and return what its `apply` gives.",
    )


def find_entry(loaded: LoadedModule, entry: str, count: int, by_keyword: bool = False) -> Any:
    """The submission's function of that name, if it takes `count` arguments, those of a list counted one by one, and
    the last of them by their names where these have defaults and it is called so. Raises Refusal: missing-entry or
    wrong-arity."""
    function = vars(loaded.module).get(entry)
    if function is None:
        raise Refusal("missing-entry", _missing(loaded, entry))
    if not callable(function):
        raise Refusal("missing-entry", f"`{entry}` is a {type(function).__name__}, not a function.")
    calling = loaded.calling.get(entry, {})
    lists = calling.get("lists", [])
    options = [name for place, name in calling.get("options", []) if by_keyword and place < count]
    count -= sum(length - 1 for _, length in lists)
    if loaded.accepted is None or loaded.accepted[0] is not function or loaded.accepted[1:] != (count, options):
        _check_arity(function, entry, count, options)
        loaded.accepted = function, count, options
    return _taking(function, lists, options) if lists or options else function


def _taking(function: Any, lists: list[list[int]], options: list[str]) -> Any:
    """The function, called with arguments of lists one by one, and `options` by name; lists end before a None."""

    def called(*args: Any) -> Any:
        given = list(args[: len(args) - len(options)])
        for first, length in reversed(lists):
            given[first : first + length] = [[arg for arg in given[first : first + length] if arg is not None]]
        return function(*given, **dict(zip(options, args[len(args) - len(options) :], strict=True)))

    return called


def _missing(loaded: LoadedModule, entry: str) -> str:
    if entry in loaded.missing:
        return f"There is no `{entry}`: {loaded.missing[entry]}."
    near = difflib.get_close_matches(entry, loaded.functions(), n=3, cutoff=0.5)
    names = " or ".join(f"`{name}`" for name in near)
    return f"There is no function `{entry}` in the submission." + (f" Did you mean {names}?" if near else "")


def _check_arity(function: Any, entry: str, count: int, options: list[str]) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*range(count - len(options)), **dict.fromkeys(options))
    except TypeError as error:
        code = getattr(inspect.unwrap(function), "__code__", None)
        line = code.co_firstlineno if code is not None else None
        raise Refusal(
            "wrong-arity", f"`{entry}{signature}` cannot be called with {count} arguments: {error}.", line
        ) from None


def make_arguments(args: Sequence[Argument], wanted: Sequence[int] = ()) -> list[Any]:
    """Tensors without data for views (equal storage numbers share one), plain values for scalars.

    As a caller's, equal views are one tensor, as in `add(x, x)`, and those of one storage have one `_base`; but where
    gradients are `wanted`, each is a tensor of its own, so that each gets its own gradient."""
    sizes: dict[int, int] = {}
    for arg in args:
        if isinstance(arg, View):
            sizes[arg.storage] = max(sizes.get(arg.storage, 0), arg.reach * ITEMSIZE[arg.dtype])
    storages = {number: torch.empty(size, dtype=torch.uint8, device="meta") for number, size in sizes.items()}
    if wanted:
        return [_tensor(arg, storages) if isinstance(arg, View) else arg.value for arg in args]  # type: ignore[union-attr]
    views = {arg: _tensor(arg, storages) for arg in args if isinstance(arg, View)}
    bases = {(view.storage, view.dtype): tensor for view, tensor in views.items() if _is_whole(tensor)}
    for view, tensor in views.items():
        base = bases.setdefault((view.storage, view.dtype), _whole(tensor))
        if tensor is not base:
            views[view] = base.as_strided(view.shape, view.stride, view.offset)
    return [views[arg] if isinstance(arg, View) else arg.value for arg in args]  # type: ignore[union-attr]


def _tensor(view: View, storages: dict[int, torch.Tensor]) -> torch.Tensor:
    storage = storages[view.storage].untyped_storage()
    empty = torch.empty(0, dtype=getattr(torch, view.dtype), device="meta")
    return empty.set_(storage, view.offset, view.shape, view.stride)


def _is_whole(tensor: torch.Tensor) -> bool:
    return tensor.is_contiguous() and tensor.nbytes == tensor.untyped_storage().nbytes()


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    """All of a tensor's storage, in a row."""
    return tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0)


# --- ways of calling --------------------------------------------------------------------------------------------------


NO_GRADIENTS, INFERENCE, VIEWS, RESULTS, TWICE = "no gradients", "inference", "views", "results", "backward twice"
APART = "each gradient apart"
CHANGED, AFTER, OFTEN = "changed in place", "after another", "often"
CALLS_IN_VAIN, MOST_KEPT_RESULTS = 3, 1 << 10
"""Ways of calling an entry that a model may choose, and that must not change what it gives: under torch.no_grad(), with
inputs that could have gradients; in torch.inference_mode(); with inputs that need gradients and are views of leaves, or
results of operations; after a backward pass of the same graph, which is retained, for another gradient of the result;
with each gradient wanted alone in a call before it; with the tensors of an earlier call, whose values have changed
since; after a call with others; after CALLS_IN_VAIN calls, or at most MOST_KEPT_RESULTS where more and more of their
results are kept."""


def forward_mode(way: str, values: Sequence[Any]) -> Any:
    """Open while the entry is called on `values` without a backward pass."""
    for value in values if way == NO_GRADIENTS else ():
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            value.requires_grad_()
    modes = {NO_GRADIENTS: torch.no_grad, INFERENCE: torch.inference_mode}
    return modes.get(way, contextlib.nullcontext)()


def derived(way: str, values: Sequence[Any], wanted: Sequence[int]) -> list[Any]:
    """The arguments of a call whose gradients at the positions `wanted` are asked for, made of these leaves."""
    made = list(values)
    for position in wanted:
        if way == VIEWS:
            made[position] = made[position].view_as(made[position])
        elif way == RESULTS:
            made[position] = made[position].clone()
    return made


def one_gradient(function: Any, values: Sequence[Any], position: int, upstream: torch.Tensor) -> Any:
    """The gradient of one argument, of a call in which no other is wanted."""
    alone = [value.detach() if isinstance(value, torch.Tensor) else value for value in values]
    leaf = alone[position].requires_grad_()
    return torch.autograd.grad(function(*alone), leaf, upstream, allow_unused=True)
