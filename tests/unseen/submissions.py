"""Submissions of vector_add that are right but where a condition holds: HOST stands before the launch, KERNEL before the store."""

from tests.beside import beside
from tests.texts import HEAD

TEXT = HEAD + beside(__file__)["text"]
HOST_LINE = 1 + TEXT.split("\n").index("    HOST")


def vector_add(host: str = "pass", kernel: str = "pass") -> str:
    """The text of a submission."""
    return TEXT.replace("HOST", host.replace("\n", "\n    ")).replace("KERNEL", kernel.replace("\n", "\n    "))
