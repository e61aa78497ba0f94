#!/bin/bash
# Moodle's Virtual Programming Lab: upload grader.tar and requirements' packages with the jail server's image; put this
# file and grader/ under "Execution files" (Advanced settings: keep them when running). It makes vpl_execution, whose
# last line on standard output is the grade.
. common_script.sh 2>/dev/null
cat > vpl_execution <<END
#!/bin/bash
cd "$PWD"
chmod -R go-rwx grader/assignments grader/solutions 2>/dev/null
mkdir -p handin && cp -- *.py *.ipynb *.toml handin/ 2>/dev/null
cd handin && PYTHONPATH=../grader GRADEKIT_ASSIGNMENTS=../grader/assignments TRITON_DEFAULT_FP_FUSION=1 \\
    GRADEKIT_GRADE_MAX="\${VPL_GRADEMAX:-100}" GRADEKIT_CLUSTER=@CLUSTER@ \\
    python3 -m gradekit --lang @LANG@ autograde vpl @ASSIGNMENT@ --pending "@PENDING@" 2>/dev/null
END
chmod +x vpl_execution
