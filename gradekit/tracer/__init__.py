"""The only room for student code: a process of its own that turns one call into a program.

It imports the standard library, torch, triton, and of gradekit `program`, `wire`, `compat` and `confine`;
nothing else of gradekit is in its reach.

    supervisor  starts a server that imports torch and triton once and forks a confined
                process for each submission (`children`), which it ends where they take too much
    child       what a child answers: load, trace, gradient
    loading     runs a submission's statements, leaving out experiments that cannot run here
    trace       one call under the modes below, as a Program; in what way it is called; what it compares and costs
    recorder    storages and steps, in order
    aten        torch operations become steps (a TorchDispatchMode)
    mask        tensors without data answer as if they were on a GPU (a TorchFunctionMode)
    origin_trace  a call whose numbers remember that they are `sizes`, and the geometry of its tensors
    compiled_model  a model around the entry, compiled by torch.compile
    cuda        torch.cuda and the Triton driver as a machine with one GPU would show them
    kernels     compiles to TTIR within a budget, records launches; `autotune` makes a Choice of an autotuned launch
    lowering    one compilation for all launches that differ in alignment, or in which integers are 1
    errors      an exception becomes (cause, message, line, detail); `hints` adds a kind sentence
"""
