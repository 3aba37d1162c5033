#!/bin/sh
# Prints a Python that can run chatsvc, or one line saying which is missing. Plain sh, so that any machine can read it.
fits='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
for python in "$PYTHON" python3 python3.13 python3.12 python3.11 python; do
    if [ -n "$python" ] && command -v "$python" >/dev/null 2>&1 && "$python" -c "$fits" >/dev/null 2>&1; then
        command -v "$python"
        exit 0
    fi
done
found=$(python3 -V 2>&1) || found='no python3'
echo "chatsvc needs Python 3.11, 3.12 or 3.13 and found $found: install one, or name it: make run PYTHON=/path/to/python3.12" >&2
exit 1
