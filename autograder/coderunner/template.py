# CodeRunner's template, with "Is combinator" and the grader "Template grader"; the whole package is the question's
# support file gradekit.zip, which Jobe lays into the folder of a run. What is printed is CodeRunner's JSON, and nothing
# goes to standard error: Jobe would take that for a failure.
import sys

del sys.path[0]  # the folder of the run: what a student attaches lies there

import os
import subprocess
import tempfile
import zipfile

answer = """{{ STUDENT_ANSWER | e('py') }}"""
with tempfile.TemporaryDirectory(dir=".") as place, zipfile.ZipFile("gradekit.zip") as package:
    grader = os.path.join(os.path.abspath(place), "grader")
    package.extractall(place)
    os.mkdir(os.path.join(place, "answer"))
    with open(os.path.join(place, "answer", "submission.py"), "w", encoding="utf-8") as stream:
        stream.write(answer)
    settings = {
        "PYTHONPATH": grader, "GRADEKIT_ASSIGNMENTS": grader + "/assignments", "TRITON_DEFAULT_FP_FUSION": "1",
        "GRADEKIT_CLUSTER": "@CLUSTER@",
    }  # fmt: skip
    words = [sys.executable, "-P", "-m", "gradekit", "--lang", "@LANG@", "autograde", "coderunner", "@ASSIGNMENT@"]
    words += ["--pending", "@PENDING@", "--seconds", "{{ QUESTION.cputimelimitsecs | default(120, true) }}"]
    done = subprocess.run(
        words, cwd=os.path.join(place, "answer"), env=os.environ | settings, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    sys.stdout.write(done.stdout.decode())
