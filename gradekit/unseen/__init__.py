"""Further inputs for a check, from what its examples have not seen of a submission: pure, nothing is run here.

A want says what must be seen, and one search over sizes finds calls for it:

- `search`: wants, the calls that meet them; a comparison of host code or of compile-time constants that goes the other
  way, a branch, mask or loop of a kernel
- `scope`: the sizes and layouts that a check may have, and those to try
- `host_branches`, `host_inputs`; `kernel_branches`, `kernel_inputs`: what calls have seen of host code and of kernels,
  and calls for the rest, by sizes and by values
- `long_dimensions`: long calls, and the longest, which are counted and not run
- `further`: calls of a check that were found so
"""
