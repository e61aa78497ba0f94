"""What Triton's compiler makes of a program's kernels on a named card, read on a machine that need not have it.

inspect.py     `gradekit inspect`: a submission, traced on inputs worth looking at; kernels compiled, read, put in words
compile.py     the grader's side of compiler.py, the process that compiles
instructions.py  the compiler's texts, beside the submission's lines
facts.py       what those texts say of one kernel               narrow_access.py  why an access is narrow
targets.py     architectures, and what one SM holds             sentences.py facts in plain words
fits.py        what needs more shared memory than a block may have
"""


class Limit:
    """What compiling a kernel may take, and what is looked into."""

    SECONDS = 60  # for one kernel: large tiles of float32 products take ten
    MEMORY_BYTES, FILE_BYTES, READ_BYTES = 4 << 30, 256 << 20, 16 << 20  # of the process; of a file; of what it wrote
    VARIANTS = 5  # of a kernel, compiled to see which argument keeps an access narrow
    SPILLED_BYTES = 32  # of a thread: a value or two that wait in memory outside of loops are not worth a sentence
