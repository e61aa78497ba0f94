"""Texts of submissions: what most of them begin and end with."""

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"


def ending(parameters: str, out: str, launch: str, name: str = "entry") -> str:
    """The end of a text: a function that makes its result, launches a kernel once, and returns the result."""
    return f"\n\ndef {name}({parameters}):\n    out = {out}\n    {launch}\n    return out\n"
