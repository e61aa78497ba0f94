#!/bin/bash
# CodeGrade, AutoTest v2: upload the package as a fixture, run `bash $FIXTURES/run.sh` in a "Custom Test" step with
# structured output, and `pip install -r $FIXTURES/requirements.txt` in the setup. It writes its lines to descriptor 3.
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH="$here/grader" GRADEKIT_ASSIGNMENTS="$here/grader/assignments" TRITON_DEFAULT_FP_FUSION=1
export GRADEKIT_CLUSTER=@CLUSTER@
if ! { true >&3; } 2>/dev/null; then exec 3>&1; fi
cd "${STUDENT:-.}" && exec python3 -m gradekit --lang @LANG@ autograde codegrade @ASSIGNMENT@ --pending "@PENDING@"
