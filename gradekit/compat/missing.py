"""What happens where a package no longer has a name that gradekit relies on: an error
that says which, never a guess."""

from __future__ import annotations

from types import TracebackType


class Incompatible(RuntimeError):
    """The installed `package` lacks a name that gradekit relies on; `lacks` is what Python said about it."""

    def __init__(self, package: str, lacks: str) -> None:
        super().__init__(
            f"{package} {_installed(package)} lacks a name that gradekit relies on ({lacks}). "
            f"Install a version that `gradekit doctor` accepts, or adapt gradekit/compat/{package}.py to this one."
        )
        self.package = package
        self.lacks = lacks


class relies_on:  # used as a statement: `with relies_on("triton"): from triton.x import y`
    """While open, a name that `package` does not have is an Incompatible; that `package` is not installed is not."""

    def __init__(self, package: str) -> None:
        self.package = package

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, ModuleNotFoundError) and error.name == self.package:
            return
        if isinstance(error, (ImportError, AttributeError)):
            raise Incompatible(self.package, str(error)) from error


def _installed(package: str) -> str:
    import importlib.metadata  # slow to import, and rarely needed

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "(of no known version)"
