#!/bin/sh
# Say what is missing to build Meshwright, and how to get it on Debian. Usage: check_tools.sh PYTHON
set -u
python=${1:-python3}
missing=""

if ! command -v "$python" >/dev/null 2>&1; then
    echo "meshwright: $python is not there." >&2
    echo "  fix: apt-get install python3, or name another: make PYTHON=/path/to/python3.11" >&2
    exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "meshwright: $python is $("$python" -V 2>&1); Python 3.11 or newer is needed." >&2
    echo "  fix: name another: make PYTHON=/path/to/python3.11" >&2
    exit 1
fi
# venv without ensurepip makes an environment that has no pip.
"$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || missing="$missing python3-venv"
if ! { [ -n "${CXX:-}" ] || command -v c++ >/dev/null 2>&1 || command -v g++ >/dev/null 2>&1 ||
    command -v clang++ >/dev/null 2>&1; }; then
    missing="$missing g++"
fi
"$python" - <<'CHECK' || missing="$missing python3-dev"
import pathlib
import sys
import sysconfig

sys.exit(not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").is_file())
CHECK
# CMake comes as a wheel where the system has none, but its generator needs make or ninja;
# ninja comes as a wheel too, so nothing else is asked for.
if [ -n "$missing" ]; then
    echo "meshwright: the build needs:$missing" >&2
    echo "  fix: apt-get install -y$missing" >&2
    exit 1
fi
