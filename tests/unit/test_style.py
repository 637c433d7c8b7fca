# SPDX-License-Identifier: Apache-2.0
"""Functions that are not used here, functions that are too long, files without a licence line."""

import json
import os
import re
import shutil
import subprocess

import lint_common

# Function → what stands for it.
BANNED = {
    "strcpy": "xstrdup or a Buf",
    "strcat": "a Buf",
    "strncpy": "xstrndup or a Buf",
    "sprintf": "buf_printf, xasprintf or snprintf",
    "vsprintf": "buf_vprintf",
    "strtok": "strcspn",
    "atoi": "str_to_i64",
    "atol": "str_to_i64",
    "atoll": "str_to_i64",
    "gets": "read",
    "alloca": "xmalloc",
    "system": "posix_spawn",
    "popen": "posix_spawn",
}
BANNED_CALL = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")[ \t\n]*\(")
FUNCTION_MAX_LINES = 120
LICENCE = "SPDX-License-Identifier: Apache-2.0"
LICENSED = (".c", ".h", ".py", ".sh", ".cmake", "CMakeLists.txt")
# Sent to sandboxes as they are, byte for byte.
UNLICENSED = ("gateway/transport/scripts/",)


def check_banned(path, text):
    return [f"{path}:{lint_common.line_of(text, m.start())}: {m.group(1)} is not used here; "
            f"use {BANNED[m.group(1)]}"
            for m in BANNED_CALL.finditer(lint_common.code_only(text))]


def check_licence(path, text):
    """Within the first lines, where a #! may be the first."""
    if LICENCE in "".join(text.splitlines(keepends=True)[:3]):
        return []
    return [f"{path}:1: no line with {LICENCE}"]


def check_lengths(paths):
    if not shutil.which("ctags"):
        print("not checked: lengths of functions, because ctags is not installed")
        return []
    output = subprocess.run(
        ["ctags", "--output-format=json", "--languages=C", "--c-kinds=f", "--fields=+ne",
         "-L", "-", "-o", "-"],
        input="\n".join(paths), cwd=lint_common.ROOT, text=True, check=True,
        stdout=subprocess.PIPE).stdout
    tags = [json.loads(line) for line in output.splitlines()]
    assert tags, "ctags found no functions"
    return [f"{t['path']}:{t['line']}: {t['name']} has {t['end'] - t['line'] + 1} lines, more than "
            f"{FUNCTION_MAX_LINES}"
            for t in tags if t["end"] - t["line"] + 1 > FUNCTION_MAX_LINES]


def check_itself():
    """The rules must be able to fail, and only where they should."""
    assert check_banned("x.c", "int a = atoi(s);")
    assert check_banned("x.c", "strcpy (a, b);")
    assert not check_banned("x.c", '/* atoi(s) */ puts("system(1)"); my_system(1); p->system(2);')
    assert check_licence("x.c", "int x;\n")
    assert not check_licence("x.c", f"#!/bin/sh\n# {LICENCE}\n")


if __name__ == "__main__":
    check_itself()
    c_paths = lint_common.files(lint_common.C_DIRS, ".c", ".h")
    problems = check_lengths(c_paths)
    for c_path in c_paths:
        problems += check_banned(c_path, lint_common.read(c_path))
    own = lint_common.files(lint_common.C_DIRS + ("e2e", "manifests", "crds"), *LICENSED)
    for own_path in own:
        empty = os.path.getsize(os.path.join(lint_common.ROOT, own_path)) == 0
        if not empty and not own_path.startswith(UNLICENSED):
            problems += check_licence(own_path, lint_common.read(own_path))
    lint_common.finish(problems, len(own), "files")
