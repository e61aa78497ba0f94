"""The CPU engine: runs programs, watches every memory access, and counts.

    text      ttir, ttir_*: TTIR text to a Module of operations
    values    values: number, Affine, tensor, mask, pointer; integers, casts: arithmetic on them
    code      registry: the table of operations; ops_*, atomics, libdevice: what each one computes
    control   frame: the values of a region; blocks: operations in order; control: loops, conditions, branches, calls
    memory    memory: storages in one address space; lanes: what is asked of the memory of a launch, lane by lane; fast
              and checked are such memories (fast says why there are two); masks serve the first, lanes and history
              the second
    runs      executor: a Program and its inputs give a RunResult; launch: which programs run together; host:
              fills, copies and allowed torch operations; budget; explain: incidents in the student's words
    facts     kernel_facts, masked_lanes: what the text of a kernel tells before anything runs
    traffic   what a program moves and computes, counted on a sample
    observer  who may look on while programs run, and which elements an access touches
"""
