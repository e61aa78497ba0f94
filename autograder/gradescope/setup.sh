#!/usr/bin/env bash
# Runs once, as root, when Gradescope builds the image. Installs Python and what gradekit needs.
set -euo pipefail

# A CPU build of torch is enough and a tenth of the size: say in GRADEKIT_PIP_OPTIONS which index has it
# (PyTorch's page "Get started" names it), or take an image that has torch already.
here=/autograder/source
for candidate in python3.13 python3.12 python3.11 python3; do
    if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        python=$candidate
        break
    fi
done
if [ -z "${python:-}" ]; then
    apt-get install -y python3.11 python3.11-venv
    python=python3.11
fi
"$python" -m venv /opt/gradekit || { apt-get install -y "$python-venv" && "$python" -m venv /opt/gradekit; }
# shellcheck disable=SC2086  # several options
/opt/gradekit/bin/pip install --no-cache-dir ${GRADEKIT_PIP_OPTIONS:-} -r "$here/requirements.txt"

# Compiled now: whoever grades may not be able to write here.
/opt/gradekit/bin/python -m compileall -q "$here/grader/gradekit"

# Nothing but root reads the tests; a submission runs as somebody else, who must be able to read gradekit itself.
chmod -R go+rX "$here/grader/gradekit"
for private in assignments solutions certificates; do
    if [ -d "$here/grader/$private" ]; then chmod -R go-rwx "$here/grader/$private"; fi
done
