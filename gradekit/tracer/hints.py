"""A kind sentence for the errors that beginners meet most often, by what Triton (3.6 to 3.9) says of them.

`tests/tracer/broken.py` holds a real kernel for each; the first pattern that is found in the message wins.
"""

from __future__ import annotations

import difflib
import inspect
import re

SHAPES = r"Cannot make_shape_compatible|Cannot broadcast"
"""What Triton says of two blocks whose shapes do not fit."""

HINTS = (
    # the launch
    (r"Cannot call @triton\.jit'd outside of the scope of a kernel",
     ("A kernel is launched with a grid: `kernel[grid](...)`. What begins with tl works in kernels only. On the host, write "
      "triton.cdiv for tl.cdiv.")),
    (r"object of type 'int' has no len\(\)",
     "If this is a launch, the grid must be a tuple, such as `kernel[(n,)](...)`, or a function that gives one."),
    (r"'float' object cannot be interpreted as an integer",
     "If this is a grid, its sizes must be integers: `triton.cdiv(n, BLOCK)` rounds up, `/` gives a float."),
    (r"'tuple' object cannot be interpreted as an integer",
     ("If this is a launch, the brackets hold the grid alone: one tuple of up to three sizes. A program has no threads. "
      "The size of its block is an argument of the kernel.")),
    (r"'function' object is not subscriptable", "If this is a launch, is @triton.jit missing above the kernel?"),
    (r"not enough values to unpack \(expected 2, got 1\)",
     ("There is one value for several names. A vector has one size: x.shape[-1] is the last size of any tensor. "
      'ctx.saved_tensors has as many tensors as were saved. An operator is named with its namespace: "course::NAME".')),
    (r"(not enough|too many) values to unpack",
     ("Write as many names as there are values. x.shape has one size for each dimension; x.shape[-1] is the last of any tensor. "
      "ctx.saved_tensors has what ctx.save_for_backward saved.")),
    (r"no autograd formula was registered",
     "Say how to go backward: NAME.register_autograd(backward, setup_context=setup_context)."),
    (r"setup_context\(\) got an unexpected keyword argument|setup_context\(\) (missing|takes)",
     "torch passes these parameters by name: def setup_context(ctx, inputs, output)."),
    (r"save_for_backward can only save variables",
     "ctx.save_for_backward keeps tensors alone. Keep numbers on ctx itself, such as ctx.causal = causal."),
    (r"Backward returned an incorrect number of gradients",
     "`backward` returns one gradient for each argument of `forward`, and None for those that have none, such as numbers."),
    (r"Backward returned an invalid gradient at index \d+ - got \[.*\] but expected shape",
     "A gradient has the shape of its input: add it up over the dimensions that the input has not, as in .sum(0)."),
    (r"Parameter \w+ must have a type annotation|infer_schema\(func\): ",
     "torch reads the types of an operator from its signature. Write them: def NAME(x: torch.Tensor) -> torch.Tensor."),
    (r"^KeyError: '?\w+'?$",
     "If this is a grid's function, it finds what the launch passes by name: `meta['BLOCK']` for a parameter BLOCK."),
    (r"<lambda>\(\) takes 0 positional arguments but 1 was given",
     "If this is a grid's function, it takes one argument: `lambda meta: (triton.cdiv(n, meta['BLOCK']),)`."),
    (r"dynamic_func\(\) (missing|got|takes)",
     "The launch and the kernel's parameters do not agree: count the arguments, those marked tl.constexpr included."),
    (r"Keyword argument \w+ was specified but unrecognised",
     "It is neither a parameter of the kernel nor an option of the launch (num_warps, num_stages, num_ctas, maxnreg)."),
    (r"num_warps must be a power of 2", "Use num_warps=1, 2, 4, 8, 16 or 32: it must be a power of two."),
    (r"cannot be accessed from Triton \(cpu tensor\?\)",
     ("This argument of the launch (they are counted from 0) is on the CPU. Make it on the device of the inputs: "
      "`torch.empty(..., device=x.device)`.")),
    (r"failed to specialize argument of type: (builtin_function_or_method|method|function)",
     "Is a call missing its parentheses at the launch? `x.numel()` is a number, `x.stride(0)` too; `x.numel` is none."),
    (r"failed to specialize argument of type: dtype",
     "A dtype needs no argument: `pointer.dtype.element_ty` is that of a pointer's elements, and tl.store converts to it."),
    (r"failed to specialize argument of type",
     "A kernel takes tensors, numbers and None: no text and no list. Give it a tensor, or several numbers, in place of this."),
    (r"a grid of \(.*-\d", "A grid has as many programs as there are tiles, and not less than 0: triton.cdiv(n, BLOCK) of them."),
    (r"a kernel has no result",
     "Nobody receives what a kernel returns. Write it with tl.store(pointer + offsets, value), and return the tensor on the host."),
    (r"'tuple' object has no attribute '?(dtype|type|handle)|cannot convert \[('(u?int\d+\[\]|constexpr\[\d+\])',? ?)+\] of type",
     "The launch passes a whole shape or all strides. Pass single numbers: x.shape[0], x.stride(0)."),
    # names
    (r"Cannot access global variable|Unsupported function referenced",
     ("A kernel sees only what is passed to it. Pass a number as an argument, or write `NAME = tl.constexpr(...)`. "
      "Put @triton.jit above a function that a kernel calls.")),
    (r"NameError: (sum|abs|any|all|round|pow) is not defined",
     ("Python's own functions know no blocks. In a kernel: tl.sum(x, axis=0), tl.abs(x), x * x for a power, "
      "tl.floor(x + 0.5) to round.")),
    (r"NameError: (enumerate|zip|reversed|map|filter|sorted|list|dict|set) is not defined",
     "Loops in a kernel run over range(...) alone: count with it, and compute the rest from the number."),
    (r"NameError: \w+ is not defined",
     ("The name is not defined at this point of the kernel. Is it misspelt, or given a value in one branch of an `if` "
      "only? Give it a value before both.")),
    (r"Block pointers have been removed|has no attribute '(make_block_ptr|advance)'",
     ("This Triton has no block pointers any more. Make a descriptor in their place, tl.make_tensor_descriptor(base, shape, "
      "strides, block_shape), with its load and store; or write pointers and a mask: tl.load(base + offsets, mask=offsets < n).")),
    (r"module 'triton\.language' has no attribute '\w*thread",
     "A program has no threads to count: it works on a whole block, whose places are tl.arange(0, BLOCK)."),
    (r"module 'triton\.language' has no attribute '(matmul|mm|bmm)'", "The product of two-dimensional blocks is tl.dot(a, b)."),
    (r"module 'triton\.language' has no attribute '(mean|average|var|std)'",
     "Write it out: the mean is tl.sum(x, axis=0) / n, the variance the mean of the squared differences from it."),
    (r"module 'triton\.language' has no attribute '(pow|square)'",
     "Write x * x, or tl.exp2(y * tl.log2(x)) for other powers."),
    (r"module 'triton\.language' has no attribute 'tanh'",
     "Write 2 * tl.sigmoid(2 * x) - 1, which is tanh(x), or tl.extra.libdevice.tanh(x) (float32 and float64)."),
    (r"module 'triton\.language' has no attribute '(empty|ones|zeros_)'",
     "A block begins with tl.zeros([BLOCK], dtype=tl.float32), or tl.full([BLOCK], 1.0, tl.float32)."),
    (r"module 'triton\.language' has no attribute '(float|double|half|int|long|bool)'",
     "Dtypes have their size in their name: tl.float32, tl.float16, tl.int32, tl.int64, tl.int1."),
    (r"module 'triton\.language' has no attribute '(inf|nan|pi)'", 'Write float("inf"), or the number itself.'),
    (r"module 'triton\.language' has no attribute",
     "There is no such function in triton.language (tl): see its reference, and tl.extra.libdevice for more of them."),
    (r"unsupported operand type\(s\) for \*\*|'__r?pow__'",
     "Kernels have no `**`: write x * x, tl.sqrt(x), or tl.exp2(y * tl.log2(x)) for other powers."),
    (r"'tensor' object has no attribute '(t|transpose|mT|swapaxes)'", "A block is transposed with tl.trans(x), or x.T."),
    (r"'tensor' object has no attribute '(float|half|double|int|long|bfloat16|type|astype|bool)'",
     "Convert a block with .to(tl.float32), .to(tl.int32) and so on."),
    (r"'tensor' object has no attribute '(unsqueeze|view_as|squeeze)'", "Add a dimension of size 1 with x[:, None] or x[None, :]."),
    (r"'tensor' object has no attribute '(size|strides?|numel|dim|ndim|device|data_ptr|is_contiguous)'",
     ("In a kernel, a tensor is only the address of its first element. Pass its sizes and strides as arguments of the "
      "launch: x.shape[0], x.stride(0).")),
    (r"list index out of range",
     ("In a kernel, a tensor is only the address of its first element and has no shape. Pass its sizes as arguments of the "
      "launch: x.shape[0].")),
    (r"'tensor' object has no attribute '(mean|var|std|norm)'",
     "Write it out: the mean is tl.sum(x, axis=0) / n, the variance the mean of the squared differences from it."),
    (r"'tensor' object has no attribute '(pow|square)'",
     "Write x * x, or tl.exp2(y * tl.log2(x)) for other powers."),
    (r"'tensor' object has no attribute '(item|cpu|cuda|numpy|tolist|clone|contiguous|detach)'",
     "A kernel's block is no torch tensor: its elements are on the chip already; compute with them by tl's functions."),
    (r"Expected dtype \[.*\] but got (fp|bf)\d+",
     "This function takes float32 or float64 alone. Convert right after loading, with .to(tl.float32), and compute in it."),
    (r"Expected dtype \[.*\] but got u?int\d+", "This function takes floats alone: convert with .to(tl.float32)."),
    (r"'\w+Backward' object has no attribute",
     "What `backward` needs, `forward` keeps: ctx.p = p there, and ctx.save_for_backward for tensors."),
    (r"'math\.\w+' op operand #\d+ must be floating-point-like, but got 'i\d+'",
     "This function takes floats: write 2.0 for 2, or convert a block with .to(tl.float32)."),
    (r"'int' object has no attribute 'to'",
     ("A plain number has no dtype to be converted. An argument that is 1 in a call becomes such a number there: convert what it is "
      "multiplied by, as in row.to(tl.int64) * stride. In tl.rand(seed, offsets) the block of offsets comes second.")),
    (r"'tensor' object has no attribute",
     "A block in a kernel is no torch tensor and has few of its methods: look for a function in tl, such as tl.sum."),
    (r"must be Tensor, not tensor|type <class 'torch\.Tensor'> to tensor",
     "torch works on the host only. Inside a kernel use triton.language: tl.exp for torch.exp, tl.rand for torch.rand."),
    (r"(float|int)\(\) argument must be", "Convert a block with .to(tl.float32) or .to(tl.int32): float() and int() take one number."),
    (r"`(np|numpy)\.\w+` works on the host",
     "NumPy works on the host only. Inside a kernel use triton.language: tl.exp for np.exp."),
    (r"`triton\.\w+` works on the host",
     ("Compute it there and pass it as a tl.constexpr argument. Inside a kernel tl.cdiv(n, BLOCK) "
      "rounds up.")),
    (r"` works on the host, not in a kernel",
     "Inside a kernel use triton.language (tl), or compute it on the host and pass it as an argument."),
    (r"'(torch\.dtype|str)' object has no attribute '(scalar|is_int|is_\w+|primitive_bitwidth|to_ir)'",
     ("A kernel has Triton's dtypes: tl.float32 for torch.float32 and for 'float32'. The dtype of a pointer's elements is "
      "pointer.dtype.element_ty.")),
    (r"must be real number, not tensor",
     "Python's math takes single numbers. Inside a kernel use triton.language: tl.exp for math.exp."),
    (r"Global variable \w+ has changed since we compiled",
     "A kernel's globals must not change after its first launch: pass what changes as an argument."),
    # shapes and sizes
    (r"arange's range must be a power of 2",
     ("The size of tl.arange must be a power of two, and the mask leaves out what is too much. A size that you choose is 512 or "
      "1024, say; a tile that must cover a whole row of n elements has `triton.next_power_of_2(n)`.")),
    (r"arange's arguments must be of type tl\.constexpr",
     ("The size of a block must be known when the kernel is compiled. Make it a parameter that is marked `tl.constexpr`. "
      "Where the block begins may vary: start + tl.arange(0, BLOCK).")),
    (r"arange\(\) missing 1 required", "tl.arange takes both ends: tl.arange(0, BLOCK)."),
    (r"'(int|constexpr)' object is not iterable", "A shape is a list, also with one size: tl.zeros([BLOCK], dtype=tl.float32)."),
    (r"missing a required argument: 'dtype'|(zeros|full)\(\) missing .*'dtype'",
     "Say the dtype too: tl.zeros([BLOCK], dtype=tl.float32)."),
    (r"unexpected keyword argument '(keepdim|keepdims)'", "Triton spells it keep_dims: tl.sum(x, axis=1, keep_dims=True)."),
    (r"unexpected keyword argument 'dim'", "Triton calls it axis: tl.sum(x, axis=1)."),
    (r"unexpected keyword argument '(default|fill|fill_value|pad|padding)'", "Triton calls it other: tl.load(p, mask=mask, other=0.0)."),
    (r"invalid axis \d+\. Expected 0 <= axis < 0|too many indices for tensor of rank 0",
     ("This is a single number, such as tl.program_id(0) or what a reduction leaves of its only dimension. Use it as it is: "
      "beside a block, a number needs no [None, :]. A reduction keeps its dimension with keep_dims=True.")),
    (r"invalid axis", "Axes are counted from 0: a block of one dimension has axis 0 alone, one of two has 0 (down) and 1 (across)."),
    (r"too many indices for tensor", "Give one index for each dimension of the block: `:` keeps it, `None` adds one of size 1."),
    (r"invoked with a 0- or 1-dimensional tensor",
     "Only two dimensions can be exchanged: x[:, None] makes a column of a block of one dimension, x[None, :] a row."),
    (r"Shape element \d+ must have type",
     "Shapes must be known when the kernel is compiled: pass the size as a `tl.constexpr` parameter."),
    (r"Shape element \d+ must be a power of 2", "Every size of a block must be a power of two: round up and mask the rest."),
    (r"exceeds triton maximum tensor numel",
     "A block has at most 1048576 elements: take smaller blocks, and loop or use more programs."),
    (SHAPES,
     ("These blocks have different shapes, which do not fit. Line them up: [:, None] makes a column, [None, :] a row. A mask has the "
      "shape of its pointers. Was one made by tl.sum or tl.max along the wrong axis?")),
    # dot
    (r"Unsupported (lhs|rhs) dtype", "tl.dot multiplies floats (and int8): convert with .to(tl.float32), or multiply and tl.sum."),
    (r"dot operands must be block", "tl.dot multiplies blocks of two dimensions; single numbers are multiplied with `*`."),
    (r"input and other must have equal ranks|Both inputs must be either 2D or 3D|must be 2D or 3D",
     "tl.dot multiplies two-dimensional blocks: give both two dimensions, with [:, None] and [None, :] if need be."),
    (r"equal reduction dimensions|First input shape .* not compatible",
     "In tl.dot(a, b) the inner sizes must agree: [M, K] times [K, N]. Does one need tl.trans?"),
    (r"Input shapes should have M >=", "Every size of tl.dot has a smallest value: pad this one to at least what is said, with a mask."),
    (r"Both operands must be same dtype",
     "tl.dot wants one dtype on both sides: convert one with .to(...), and accumulate in float32."),
    (r"'MatMult'", "In a kernel, `@` multiplies nothing: write tl.dot(a, b) for the product of two-dimensional blocks."),
    # control flow
    (r"Loop carried variable \w+ changed type",
     ("A variable that a loop changes must not be a tl.constexpr, and stays of one kind: copy it into a variable of its own "
      "before the loop.")),
    (r"'scf\.if' op operand", "`a if c else b` takes one number as c, not a block. Choose element by element: tl.where(c, a, b)."),
    (r"'scf\.condition' op operand",
     "`while` takes one number, not a block: reduce it (tl.max(block, axis=0) > 0), or loop over a range and mask."),
    (r"For (lower|upper) bound must be a scalar|For step must be a scalar",
     "range takes single numbers, not a block: a block is worked on as a whole, without a loop over its elements."),
    (r"'(Name|List|Tuple|Subscript|Attribute)' object has no attribute 'func'|Only `range` and `static_range` iterators",
     ("Loops in a kernel run over range(...) alone (tl.static_range unrolls). A block is worked on as a whole, without a "
      "loop over its elements; `with` is not there.")),
    (r"Loop-carried variable .* initial type .* re-assigned",
     ("Before a loop and in it, a variable must have the same dtype and the same shape: start with "
      "tl.zeros([...], dtype=tl.float32), or 0.0 where it is a float.")),
    (r"Mismatched type for .* between then block|initial value for .* has type|does not have the same type",
     "Both branches of an `if` must give a variable the same dtype and the same shape."),
    (r"Boolean value of Tensor with more than one value is ambiguous",
     "`if` takes one number, not a block. Choose element by element with tl.where, or with a mask."),
    (r"unsupported AST node type: Global",
     "Programs share no variables: keep a value in the program, or in memory, with tl.store or tl.atomic_add."),
    (r"unsupported AST node type: (Raise|Try)|unsupported AST node type: Import",
     "A kernel cannot raise, catch or import: do that on the host. tl.device_assert checks a condition."),
    (r"nested function definition", "A function that a kernel calls stands beside it, with @triton.jit above."),
    (r"simultaneous multiple comparison", "Put each comparison into parentheses, for `&` binds tighter than `<`: `(0 <= x) & (x < n)`."),
    (r"chained boolean operators", "Add parentheses, or write & and | between parenthesized comparisons."),
    (r"Cannot have `return` statements inside",
     "A kernel cannot return from inside a loop: put the rest under an `if`, or mask it."),
    (r"unsupported AST node type: (Break|Continue)",
     "Kernels have no break or continue: put the rest of the loop under an `if`, or use `while` with a condition."),
    (r"For loop bounds and step must all be ints", "The ends of range must be integers: use // or tl.cdiv in place of /."),
    (r"unsupported AST node type|only tuple comprehensions are supported|not \(currently\) implemented",
     "Kernels are written in a small part of Python: no list, dict, lambda, try or with inside them."),
    (r"static_assert", "A tl.static_assert in the kernel does not hold for these arguments."),
    (r"'tuple' object has no attribute '?(append|extend|insert|pop)",
     "A kernel has no lists to grow: keep what you gather in one block, and add to it in the loop."),
    (r"has no attribute '?(append|extend|insert)|'(append|extend|insert|pop)' is not in list",
     "A kernel has no lists to grow: keep what you gather in one block, and add to it in the loop."),
    (r"object of type 'tensor' has no len\(\)",
     "A block's size is the tl.constexpr that it was made with, and a tensor's size an argument: pass it to the kernel."),
    (r"(min|max) requires at least 2 values", "The largest element of one block is tl.max(x, axis=0), the smallest tl.min(x, axis=0)."),
    (r"can't multiply sequence|multiply sequence by non-int|cannot convert \[.* of type <class 'list'>|type <class '.*\btuple'> to tensor",
     "A kernel has no lists or tuples to compute with: keep the numbers in a block (tl.arange, tl.full, tl.where)."),
    (r"f-string|of type <class 'str'> to tensor|string literal",
     'A kernel has no text. To print, tl.device_print("x", x); a report does not show what is printed.'),
    (r"create_reduce\(\): incompatible function arguments",
     ("tl.max and tl.min reduce one block along an axis. The larger of two values, element by element, is "
      "tl.maximum(a, b); the smaller is tl.minimum(a, b).")),
    # memory
    (r"unsupported tensor index|Did you forget to add @triton\.jit",
     ("Elements cannot be picked out of a block by index: load what you need with tl.load(pointer + offsets). "
      "Brackets take only `:` and `None`.")),
    (r"__setitem__ is not supported|only support .*assign",
     "Elements of a block cannot be assigned: build the block with tl.where, and write memory with tl.store."),
    (r"Unsupported ptr type .* in `tl\.store`",
     ("The first argument must be a pointer, or a block of them, the second the value: "
      "tl.store(pointer + offsets, value, mask=mask).")),
    (r"Unsupported ptr type", "The first argument must be a pointer, or a block of them: a tensor argument plus offsets."),
    (r"cannot add pointers together", "Offsets are added to one pointer: pointer + integers."),
    (r"invalid operands of type pointer|Expected dtype \[.*\] but got pointer",
     ("A pointer is an address: integers can be added to it, nothing else (`//` in place of `/` keeps offsets integers). For "
      "the values there, tl.load(pointer + offsets).")),
    (r"invalid operands of type \S*(float|fp|bf)",
     "`&`, `|`, `^` and `~` take masks and integers: compare first, in parentheses, as in (x > 0) & (x < 1)."),
    (r"'tt\.(load|store)' op operand #\d+ must be 1-bit", "A mask is a comparison, true where an element exists: mask=offsets < n."),
    (r"unexpected type (fp|bf)", "`//` and `%` take integers in a kernel: use `/` for floats, or convert with .to(tl.int32)."),
    (r"store\(\) missing 1 required", "tl.store takes the pointers and the value: tl.store(pointer + offsets, value, mask=mask)."),
    (r"where\(\) missing", "tl.where takes a condition and both values: tl.where(mask, x, 0.0)."),
    (r"program_id\(\) missing|program_id axis must be", "A grid has axes 0, 1 and 2: tl.program_id(0) is the first of them."),
    (r"missing a required argument: 'offset'|rand\w*\(\) missing .*'offset'", "Random numbers take a seed and a block of offsets: tl.rand(seed, offsets)."),
    (r"it refuses `\w+\.rand",
     ("Random numbers take a seed and a block of offsets, both integers: tl.rand(seed, offsets). Do the launch's arguments stand "
      "in the order of the kernel's parameters?")),
    (r"missing (a|\d) required|missing a required argument", "Look at the function's parameters: the call leaves some out."),
    (r"Value argument cannot be block type if pointer",
     "This stores a block through a single pointer: add a block of offsets to the pointer, or reduce the block first."),
    (r"Mask argument cannot be block type if pointer",
     "The pointer is a single one, and the mask a block: add a block of offsets to the pointer."),
    (r"`other` cannot be provided without `mask`", "`other` fills in what the mask leaves out: give a mask too, or leave it out."),
    (r"is not string$", 'Printing begins with a text: tl.device_print("x", x). A report does not show what is printed.'),
    (r"Expected dtype \[.*\] but got int", "This function wants floats: convert with .to(tl.float32) first."),
    # the host
    (r"Expected all tensors to be on the same device",
     "One of the tensors is on the CPU: make it with `device=x.device`."),
    (r"module 'torch' has no attribute '(cdiv|next_power_of_2)'", "It is triton.cdiv, and triton.next_power_of_2."),
    (r"'builtin_function_or_method'|'method'", "Is a call missing its parentheses? `x.size()` is a shape, `x.numel()` a number."),
)  # fmt: skip
"""What Triton says, and what to do about it."""


def hint(message: str) -> str:
    """What to do about an error with this message; "" where there is nothing helpful to say."""
    advice = next((advice for pattern, advice in HINTS if re.search(pattern, message)), "")
    return " ".join(filter(None, ["" if _is_special(advice) else _near_miss(message), advice]))


def _is_special(advice: str) -> bool:
    """Whether the advice names the function to use itself, so that no other is to be guessed."""
    return bool(advice) and not advice.startswith("There is no such function")


def _near_miss(message: str) -> str:
    """What a misspelt function of triton.language, or a misspelt argument of one, is nearly called; "" for nothing."""
    from triton import language  # not at the top: graders ask for hints too, and have no need of Triton

    if unknown := re.search(r"module 'triton\.language' has no attribute '(\w+)'", message):
        near = difflib.get_close_matches(unknown[1], dir(language), n=1, cutoff=0.7)
        return f"Did you mean tl.{near[0]}?" if near else ""
    if keyword := re.search(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'", message):
        function = getattr(language, keyword[1], None)
        names = inspect.signature(function).parameters if callable(function) else ()
        near = difflib.get_close_matches(keyword[2], [name for name in names if name[0] != "_"], n=1, cutoff=0.7)
        return f"tl.{keyword[1]} has no `{keyword[2]}`: write {near[0]}=." if near else ""
    return ""
