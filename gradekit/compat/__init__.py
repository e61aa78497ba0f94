"""Private names of other packages, and what differs between their releases: all of it in
this room, a file for each package.

triton.py  torch.py  torch_compile.py  hypothesis.py  pytest.py     each imports its own package and nothing of gradekit
missing.py     the error for a name that a release no longer has

No other module of gradekit imports or touches a private name of these packages (tests/floors/test_private_names.py),
and tests/compat says of each name what gradekit expects of it. So a new release is tried by running tests/compat, and
supported by changing one file here and the version range in pyproject.toml.
"""
