#!/bin/sh
# Exits with 0: any other code fails the job, whatever results.json says.
export PYTHONPATH=/grader/grader GRADEKIT_ASSIGNMENTS=/grader/grader/assignments TRITON_DEFAULT_FP_FUSION=1
export GRADEKIT_CLUSTER=@CLUSTER@
if [ -d /grader/grader/certificates ]; then export GRADEKIT_CERTIFICATES=/grader/grader/certificates; fi
mkdir -p /grade/results
python3 -P -m gradekit --lang @LANG@ autograde prairielearn @ASSIGNMENT@ --pending "@PENDING@" --seconds "${GRADEKIT_SECONDS:-600}"
exit 0
