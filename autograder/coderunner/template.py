# CodeRunner's template, with "Is combinator" and the grader "Template grader". The Jobe server has this package
# unpacked at /opt/gradekit, and the packages of requirements.txt. What it prints is CodeRunner's JSON.
import os
import subprocess
import sys
import tempfile

answer = """{{ STUDENT_ANSWER | e('py') }}"""
with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "submission.py"), "w", encoding="utf-8") as stream:
        stream.write(answer)
    grader = "/opt/gradekit/grader"
    settings = {
        "PYTHONPATH": grader, "GRADEKIT_ASSIGNMENTS": grader + "/assignments", "TRITON_DEFAULT_FP_FUSION": "1",
        "GRADEKIT_CLUSTER": "@CLUSTER@",
    }  # fmt: skip
    words = [sys.executable, "-m", "gradekit", "--lang", "@LANG@", "autograde", "coderunner", "@ASSIGNMENT@"]
    words += ["--pending", "@PENDING@"]
    done = subprocess.run(words, cwd=folder, env=os.environ | settings, stdout=subprocess.PIPE, check=False)
    sys.stdout.write(done.stdout.decode())
