"""Writes steps.json, the record of steps that the tests of the pages show: the documentation's wrong matrix product.

    python -m tests.browser.sample
"""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("steps.json")
EXAMPLE = ROOT / "docs" / "examples" / "matmul.py"
INPUTS = '{"call":{"tuple":[{"input":["float32",[20,40]]},{"input":["float32",[40,20],null,0,"normal",1]}]}}'


def made() -> dict[str, Any]:
    """The record, made anew."""
    from gradekit.request import GradingOptions
    from gradekit.stepview.played import step_record

    options = GradingOptions(keyword="test_contiguous_float32", inputs=INPUTS, device="cpu")
    return step_record(EXAMPLE, None, options) | {"path": "matmul.py"}


if __name__ == "__main__":
    FILE.write_text(json.dumps(made(), separators=(",", ":")) + "\n", encoding="utf-8")
