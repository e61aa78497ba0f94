#!/bin/bash
# Moodle's Virtual Programming Lab. Its "Execution files" are this one and the whole package, as gradekit.zip. VPL runs
# this script, deletes both, and runs vpl_execution, which this script makes: the last line that prints is the grade.
. common_script.sh
grader=$(mktemp -d "$PWD/.gradekit.XXXXXX")  # a name that no file of a student has
python3 -P -m zipfile -e gradekit.zip "$grader"
cat > vpl_execution <<END
#!/bin/bash
. vpl_environment.sh
export PYTHONPATH="$grader/grader" GRADEKIT_ASSIGNMENTS="$grader/grader/assignments" TRITON_DEFAULT_FP_FUSION=1
export GRADEKIT_GRADE_MAX="\${VPL_GRADEMAX:-100}" GRADEKIT_CLUSTER=@CLUSTER@
exec python3 -P -m gradekit --lang @LANG@ autograde vpl @ASSIGNMENT@ --pending "@PENDING@" \\
    --seconds "\$((\${VPL_MAXTIME:-240} > 30 ? \${VPL_MAXTIME:-240} : 30))" 2>/dev/null
END
chmod +x vpl_execution
