"""Further inputs for a check, from what its examples have not seen of a submission: pure, nothing is run here.

A want says what must be seen, and one search over sizes finds calls for it:

- `wants`: a comparison of host code or of compile-time constants that goes the other way, a branch, mask or loop of a
  kernel, an index that reaches what it is taken modulo
- `scope`, `candidates`, `search`: the sizes that a check may have, those to try, and those among them that meet a want
- `host_branches`, `host_inputs`; `kernel_branches`, `kernel_values`, `kernel_inputs`: what calls have seen of host code
  and of kernels, and calls for the rest; `laid_out`, `special_values`: layouts and values that sizes do not decide
- `long_dimensions`; `promised_sizes`, `counted_lanes`: long calls, and the longest, which are counted and not run
- `further`: calls of a check that were found so
"""
