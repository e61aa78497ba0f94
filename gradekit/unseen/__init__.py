"""Further inputs for a check, from what its examples have not seen of a submission: pure, nothing is run here.

A want says what must be seen, and one search over sizes finds calls for it:

- `host_branches`, `host_inputs`: comparisons of host code, and which ways each has gone; wants for the other ways
- `kernel_branches`, `missing_ways`, `kernel_inputs`: the same of kernels, by sizes and by values of tensors
- `candidates`, `search`: the sizes to try, and those among them that meet a want
- `further`: calls of a check that were found so
"""
