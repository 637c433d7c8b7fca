# SPDX-License-Identifier: Apache-2.0
"""What the lint tests share: the files they look at, C without its comments, and the verdict."""

import os
import re
import shutil
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
C_DIRS = ("common", "controller", "gateway", "tests")
SKIPPED = 77  # what ctest takes for "skipped" (SKIP_RETURN_CODE)


def files(dirs, *endings):
    """Paths below the given directories, relative to the root, sorted."""
    found = []
    for top in dirs:
        for folder, subdirs, names in os.walk(os.path.join(ROOT, top)):
            subdirs[:] = sorted(
                d for d in subdirs
                if not d.startswith((".", "build", "__pycache__", "node_modules", "corpus")))
            found += [os.path.relpath(os.path.join(folder, n), ROOT)
                      for n in sorted(names) if n.endswith(endings)]
    return found


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def code_only(text):
    """C text with comments, strings and characters blanked; lines stay where they are."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def need(tool):
    """The tool's path; ends the test as skipped, with the reason, where it is missing."""
    path = shutil.which(tool)
    if not path:
        print(f"skipped: {tool} is not installed")
        sys.exit(SKIPPED)
    return path


def finish(problems, looked_at, what):
    """Prints the problems and ends the program. Nothing to look at is a failure too."""
    for problem in problems:
        print(problem)
    if not looked_at:
        problems = [f"no {what} found below {ROOT}"]
        print(problems[0])
    print(f"{looked_at} {what}, {len(problems)} problems")
    sys.exit(1 if problems else 0)
