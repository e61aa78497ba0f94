"""What a report says of a mistake of a corpus."""

from pathlib import Path

from gradekit.assignment import get
from gradekit.report.record import to_dict
from tests.graded import grade
from tests.repair.corpora import Tutored, corpus


def tutored(id: str, name: str, folder: Path) -> Tutored:
    """What a quick grading up to the first check that fails says of a mistake; its submission is written to `folder`."""
    mistake = next(mistake for mistake in corpus(id) if mistake.name == name)
    path = folder / "submission.py"
    path.write_text(mistake.text, encoding="utf-8")
    return Tutored.of(mistake, to_dict(grade(get(id), path, device="cpu", profile="quick", stop=True)))
