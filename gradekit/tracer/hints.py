"""A kind sentence for the errors that beginners meet most often, by what Triton (3.6 to 3.9) says of them."""

import difflib
import inspect
import re
import tomllib
from pathlib import Path

SHAPES = r"Cannot make_shape_compatible|Cannot broadcast"  # what Triton says of two blocks whose shapes do not fit

_FILE = Path(__file__).with_name("hints.toml")
HINTS = tuple(tomllib.loads(_FILE.read_text(encoding="utf-8"))["errors"].items())
"""What Triton says, and what to do about it."""


def hint(message: str) -> str:
    """What to do about an error with this message; "" where there is nothing helpful to say."""
    advice = next((advice for pattern, advice in HINTS if re.search(pattern, message)), "")
    return " ".join(filter(None, ["" if _is_special(advice) else _near_miss(message), advice]))


def _is_special(advice: str) -> bool:
    """Whether the advice names the function to use itself, so that no other is to be guessed."""
    return bool(advice) and not advice.startswith("There is no such function")


def _near_miss(message: str) -> str:
    """What a misspelt name of tl, torch or a tensor, or a misspelt argument of tl's, is nearly called; "" for none."""
    from triton import language  # not at the top: graders ask for hints too, and have no need of Triton

    if unknown := re.search(r"('triton\.language'|module 'torch'|'Tensor' object) has no attribute '(\w+)'", message):
        import torch

        owners = {"'triton.language'": (language, "tl"), "module 'torch'": (torch, "torch")}
        owner, name = owners.get(unknown[1], (torch.Tensor, ""))
        near = difflib.get_close_matches(unknown[2], dir(owner), n=1, cutoff=0.7)
        return f"Did you mean {name}.{near[0]}?" if near else ""
    if keyword := re.search(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'", message):
        function = getattr(language, keyword[1], None)
        names = inspect.signature(function).parameters if callable(function) else ()
        near = difflib.get_close_matches(keyword[2], [name for name in names if name[0] != "_"], n=1, cutoff=0.7)
        return f"tl.{keyword[1]} has no `{keyword[2]}`: write {near[0]}=." if near else ""
    return ""
