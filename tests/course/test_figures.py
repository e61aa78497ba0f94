"""Every handout has its picture, and every picture is what tools/figures.py draws."""

import importlib.util
import itertools
import re
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from gradekit.assignment import Assignment, discover

ROOT = Path(__file__).parents[2]
ASSIGNMENTS = discover(ROOT / "assignments")

every_assignment = pytest.mark.parametrize("assignment", ASSIGNMENTS.values(), ids=lambda assignment: assignment.id)


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    """tools/figures.py, with its folder on the path, as when it is run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tools")
        patch.setattr(sys, "dont_write_bytecode", True)
        spec = importlib.util.spec_from_file_location("figures", ROOT / "tools" / "figures.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


@every_assignment
def test_the_committed_picture_is_what_the_script_draws_within_its_sheet_and_shown_with_words(
    assignment: Assignment, figures: ModuleType
) -> None:
    drawn = figures.FIGURES[assignment.id]().svg()
    assert (assignment.folder / "figure.svg").read_text(encoding="utf-8") == drawn
    (shown,) = re.findall(r"!\[([^\]]+)\]\(figure\.svg\)", assignment.handout.read_text(encoding="utf-8"))
    assert len(shown.split()) >= 5
    root = ElementTree.fromstring(drawn)
    for element, (side, at) in itertools.product(root, (("width", "x"), ("height", "y"))):
        most = float(root.attrib[side]) - float(element.get(side, 0))
        assert 0 <= float(element.get(at, 0)) <= most, ElementTree.tostring(element)


def test_the_pictures_of_other_pages_are_what_the_script_draws(figures: ModuleType) -> None:
    """... and a page shows each, with words for those who cannot see it"""
    for place, figure in figures.MORE.items():
        path = ROOT / "assignments" / place
        assert path.read_text(encoding="utf-8") == figure().svg()
        (shown,) = re.findall(rf"!\[([^\]]+)\]\({path.name}\)", path.with_suffix(".md").read_text(encoding="utf-8"))
        assert len(shown.split()) >= 5
