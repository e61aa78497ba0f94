"""What Triton's compiler makes of a program's kernels on a named card, read on a machine that need not have it.

inspect.py     `gradekit inspect`: a submission, traced on inputs worth looking at; kernels compiled, read, put in words
compile.py     the grader's side of compiler.py, the process that compiles
instructions.py  the compiler's texts, beside the submission's lines
facts.py       what those texts say of one kernel               narrow_access.py  why an access is narrow
targets.py     architectures, and what one SM holds             sentences.py facts in plain words
"""
