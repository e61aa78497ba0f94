"""Further inputs for a check, from what its examples have not seen of a submission: pure, nothing is run here.

- `host_branches`: the comparisons that host code makes of sizes, strides and scalars, and which ways each has gone
- `solving`: arguments within the domain for which a comparison goes the other way
- `further`: these as calls of a check
"""
