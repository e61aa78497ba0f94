"""A kind sentence for the errors that beginners meet most often, by what Triton (3.6 to 3.9) says of them.

`tests/tracer/broken.py` holds a real kernel for each; the first pattern that is found in the message wins.
"""

from __future__ import annotations

import difflib
import re

SHAPES = r"Cannot make_shape_compatible|Cannot broadcast"
"""What Triton says of two blocks whose shapes do not fit."""

HINTS = (
    # the launch
    (r"Cannot call @triton\.jit'd outside of the scope of a kernel",
     "A kernel is launched with a grid: `kernel[grid](...)`. To call it from another kernel, call it inside that one."),
    (r"object of type 'int' has no len\(\)",
     "If this is a launch, the grid must be a tuple, such as `kernel[(n,)](...)`, or a function that gives one."),
    (r"'float' object cannot be interpreted as an integer",
     "If this is a grid, its sizes must be integers: `triton.cdiv(n, BLOCK)` rounds up, `/` gives a float."),
    (r"'tuple' object cannot be interpreted as an integer",
     ("If this is a launch, the brackets hold the grid alone, one tuple of up to three sizes. A program has no threads to "
      "count: the size of its block is an argument of the kernel.")),
    (r"'function' object is not subscriptable", "If this is a launch, is @triton.jit missing above the kernel?"),
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
     "This argument is on the CPU. Make it on the device of the inputs: `torch.empty(..., device=x.device)`."),
    (r"failed to specialize argument of type",
     "A kernel takes tensors, numbers and None. Give it a tensor, or several numbers, in place of this."),
    # names
    (r"Cannot access global variable|Unsupported function referenced",
     ("Kernels see only what is passed to them. Pass a number as an argument, write a constant as "
      "`NAME = tl.constexpr(...)`, and put @triton.jit above a function that a kernel calls.")),
    (r"NameError: \w+ is not defined",
     ("The name is not defined at this point of the kernel. Is it misspelt, or given a value in one branch of an `if` "
      "only? Give it a value before both.")),
    (r"module 'triton\.language' has no attribute '\w*thread",
     "A program has no threads to count: it works on a whole block, whose places are tl.arange(0, BLOCK)."),
    (r"module 'triton\.language' has no attribute",
     "There is no such function in triton.language (tl): see its reference, and tl.extra.libdevice for more of them."),
    (r"unsupported operand type\(s\) for \*\*|'__r?pow__'",
     "Kernels have no `**`: write x * x, tl.sqrt(x), or tl.exp2(y * tl.log2(x)) for other powers."),
    (r"'tensor' object has no attribute",
     "A block in a kernel is no torch tensor and has few of its methods: look for a function in tl, such as tl.sum."),
    (r"must be Tensor, not tensor", "torch works on the host only. Inside a kernel use triton.language: tl.exp for torch.exp."),
    (r"must be real number, not tensor",
     "Python's math takes single numbers. Inside a kernel use triton.language: tl.exp for math.exp."),
    (r"Global variable \w+ has changed since we compiled",
     "A kernel's globals must not change after its first launch: pass what changes as an argument."),
    # shapes and sizes
    (r"arange's range must be a power of 2",
     "The size of tl.arange must be a power of two: use `triton.next_power_of_2(n)` and mask what is too much."),
    (r"arange's arguments must be of type tl\.constexpr",
     "The ends of tl.arange must be known when the kernel is compiled: pass them as `tl.constexpr` parameters."),
    (r"Shape element \d+ must have type",
     "Shapes must be known when the kernel is compiled: pass the size as a `tl.constexpr` parameter."),
    (r"Shape element \d+ must be a power of 2", "Every size of a block must be a power of two: round up and mask the rest."),
    (r"exceeds triton maximum tensor numel",
     "A block has at most 1048576 elements: take smaller blocks, and loop or use more programs."),
    (SHAPES,
     ("The shapes of the two sides do not fit (a mask must fit its pointers too): compare their sizes, and use [:, None] "
      "and [None, :] to line them up.")),
    # dot
    (r"input and other must have equal ranks|Both inputs must be either 2D or 3D|must be 2D or 3D",
     "tl.dot multiplies two-dimensional blocks: give both two dimensions, with [:, None] and [None, :] if need be."),
    (r"equal reduction dimensions|First input shape .* not compatible",
     "In tl.dot(a, b) the inner sizes must agree: [M, K] times [K, N]. Does one need tl.trans?"),
    (r"Input shapes should have M >=", "Every size of tl.dot has a smallest value: pad this one to at least what is said, with a mask."),
    (r"Both operands must be same dtype",
     "tl.dot wants one dtype on both sides: convert one with .to(...), and accumulate in float32."),
    (r"'MatMult'", "In a kernel, `@` multiplies nothing: write tl.dot(a, b) for the product of two-dimensional blocks."),
    # control flow
    (r"Loop-carried variable .* initial type .* re-assigned",
     ("Before a loop and in it, a variable must have the same dtype and the same shape: start with "
      "tl.zeros([...], dtype=tl.float32), or 0.0 where it is a float.")),
    (r"Mismatched type for .* between then block|initial value for .* has type|does not have the same type",
     "Both branches of an `if` must give a variable the same dtype and the same shape."),
    (r"Boolean value of Tensor with more than one value is ambiguous",
     "`if` takes one number, not a block. Choose element by element with tl.where, or with a mask."),
    (r"simultaneous multiple comparison", "Split the chain: `(0 <= x) & (x < n)`."),
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
    (r"create_reduce\(\): incompatible function arguments",
     ("tl.max and tl.min reduce one block along an axis. The larger of two values, element by element, is "
      "tl.maximum(a, b); the smaller is tl.minimum(a, b).")),
    # memory
    (r"unsupported tensor index|Did you forget to add @triton\.jit",
     ("Elements cannot be picked out of a block by index: load what you need with tl.load(pointer + offsets). "
      "Brackets take only `:` and `None`.")),
    (r"__setitem__ is not supported|only support .*assign",
     "Elements of a block cannot be assigned: build the block with tl.where, and write memory with tl.store."),
    (r"Unsupported ptr type", "The first argument must be a pointer, or a block of them: a tensor argument plus offsets."),
    (r"cannot add pointers together", "Offsets are added to one pointer: pointer + integers."),
    (r"invalid operands of type pointer", "Only integers can be added to a pointer: use // in place of /, or .to(tl.int32)."),
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
    (r"'builtin_function_or_method'|'method'", "Is a call missing its parentheses? `x.size()` is a shape, `x.numel()` a number."),
)  # fmt: skip
"""What Triton says, and what to do about it."""


def hint(message: str) -> str:
    """What to do about an error with this message; "" where there is nothing helpful to say."""
    advice = next((advice for pattern, advice in HINTS if re.search(pattern, message)), "")
    return " ".join(filter(None, [_near_miss(message), advice]))


def _near_miss(message: str) -> str:
    """The function of triton.language that a misspelt one is nearly called, as a question."""
    from triton import language  # not at the top: graders ask for hints too, and have no need of Triton

    unknown = re.search(r"module 'triton\.language' has no attribute '(\w+)'", message)
    near = difflib.get_close_matches(unknown[1], dir(language), n=1, cutoff=0.7) if unknown else []
    return f"Did you mean tl.{near[0]}?" if near else ""
