"""Private names of other packages, and what differs between their releases: all of it in
this room, a file for each package.

triton.py  torch.py  torch_import.py  torch_compile.py  hypothesis.py  pytest.py
Each imports its own package and nothing of gradekit. A name that a release no longer has is an error that says which,
never a guess.

No other module of gradekit imports or touches a private name of these packages (tests/floors/test_private_names.py),
and tests/compat says of each name what gradekit expects of it. So a new release is tried by running tests/compat, and
supported by changing one file here and the version range in pyproject.toml.
"""

import contextlib
from collections.abc import Iterator


class Incompatible(RuntimeError):
    """The installed `package` lacks a name that gradekit relies on; `lacks` is what Python said about it."""

    def __init__(self, package: str, lacks: str) -> None:
        super().__init__(
            f"{package} {_installed(package)} lacks a name that gradekit relies on ({lacks}). "
            f"Install a version that `gradekit doctor` accepts, or adapt gradekit/compat/{package}.py to this one."
        )
        self.package = package
        self.lacks = lacks


@contextlib.contextmanager
def relies_on(package: str) -> Iterator[None]:
    """While open, a name that `package` does not have is an Incompatible; that `package` is not installed is not."""
    try:
        yield
    except (ImportError, AttributeError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == package:
            raise
        raise Incompatible(package, str(error)) from error


def _installed(package: str) -> str:
    import importlib.metadata  # slow to import, and rarely needed

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "(of no known version)"
