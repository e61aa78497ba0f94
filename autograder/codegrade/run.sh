#!/bin/bash
# CodeGrade, AutoTest v2: upload the package as a fixture, run `bash $FIXTURES/run.sh` in a "Custom Test" step with
# structured output, and `pip install -r $FIXTURES/requirements.txt` in the setup. It writes its lines to descriptor 3,
# through `cg truncate` where there is one, as CodeGrade's own reporters do: it keeps messages below the most that fit.
here=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH="$here/grader" GRADEKIT_ASSIGNMENTS="$here/grader/assignments" TRITON_DEFAULT_FP_FUSION=1
export GRADEKIT_CLUSTER=@CLUSTER@
cd "${STUDENT:-.}" || exit
if ! { true >&3; } 2>/dev/null; then exec 3>&1; fi
grade() { python3 -P -m gradekit --lang @LANG@ autograde codegrade @ASSIGNMENT@ --pending "@PENDING@"; }
if [ "$CG_ATV2" = true ] && command -v cg >/dev/null; then
    { grade 3>&1 >&4 | cg truncate; } 4>&1
else
    grade
fi
