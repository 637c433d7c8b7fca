# SPDX-License-Identifier: Apache-2.0
"""clang-format has nothing to change."""

import subprocess

import lint_common

if __name__ == "__main__":
    tool = lint_common.need("clang-format")
    paths = lint_common.files(lint_common.C_DIRS, ".c", ".h")
    output = subprocess.run([tool, "--dry-run", "-Werror", "--ferror-limit=3", *paths],
                            cwd=lint_common.ROOT, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False).stdout
    problems = [line for line in output.splitlines() if "error:" in line]
    lint_common.finish(problems, len(paths), "C files")
