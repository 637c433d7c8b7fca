# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over the sources of the programs, by compile_commands.json of the given build folder.

usage: test_tidy.py BUILD_DIRECTORY [PATH_PREFIX...]

A file that passed is not looked at again before something changes that it depends on: its text, the
project's headers it includes, its command, .clang-tidy or the tool. The marks are in
BUILD_DIRECTORY/tidy.
"""

import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys

import lint_common

OWN_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)
PROGRAMS = ("common/", "controller/", "gateway/")
# Flags of gcc that clang does not know are no problem of the source.
EXTRA = ("--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-unused-command-line-argument")
JOBS = 2


def with_headers(path, seen):
    """path and the headers it reaches, as far as they are the project's own."""
    if path in seen or not os.path.exists(os.path.join(lint_common.ROOT, path)):
        return
    seen.add(path)
    for name in OWN_INCLUDE.findall(lint_common.read(path)):
        with_headers(name, seen)


def key_of(path, command, version):
    seen = set()
    with_headers(path, seen)
    parts = [version, command, lint_common.read(".clang-tidy")]
    parts += [name + "\0" + lint_common.read(name) for name in sorted(seen)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def command_of(entry):
    return entry.get("command") or shlex.join(entry["arguments"])


def check_file(tool, build, mark, path):
    if os.path.exists(mark):
        return path, [], True
    run = subprocess.run([tool, "-p", build, "--quiet", *EXTRA, path], cwd=lint_common.ROOT,
                         text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    problems = [line for line in run.stdout.splitlines() if re.search(r"(error|warning): ", line)]
    if run.returncode != 0 and not problems:
        problems = [f"{path}: clang-tidy ended with {run.returncode}: {run.stdout[-500:]}"]
    if not problems:
        with open(mark, "w", encoding="utf-8") as file:
            file.write(path + "\n")
    return path, problems, False


def sources(build, prefixes):
    """Path → command, for the project's own sources below the prefixes."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    found = {}
    for entry in entries:
        path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), lint_common.ROOT)
        if path.startswith(prefixes):
            found[path] = command_of(entry)
    return found


def main(build, prefixes):
    tool = lint_common.need("clang-tidy")
    version = subprocess.run([tool, "--version"], text=True, stdout=subprocess.PIPE,
                             check=True).stdout
    marks = os.path.join(build, "tidy")
    os.makedirs(marks, exist_ok=True)
    found = sources(build, prefixes)
    problems, cached, keys = set(), 0, set()
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        runs = []
        for path, command in sorted(found.items()):
            keys.add(key_of(path, command, version))
            mark = os.path.join(marks, key_of(path, command, version))
            runs.append(pool.submit(check_file, tool, build, mark, path))
        for run in runs:
            _, lines, was_cached = run.result()
            problems.update(lines)
            cached += was_cached
    if prefixes == PROGRAMS:
        for name in set(os.listdir(marks)) - keys:
            os.unlink(os.path.join(marks, name))
    print(f"{cached} of {len(found)} were unchanged")
    lint_common.finish(sorted(problems), len(found), "sources")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], tuple(sys.argv[2:]) or PROGRAMS)
