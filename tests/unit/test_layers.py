# SPDX-License-Identifier: Apache-2.0
"""Who may include whom: the layers of common/, the two programs, and the doors to the libraries."""

import os
import re

import lint_common

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)

# Directory → directories whose headers it may include. The longest directory that fits counts.
ALLOWED = {
    "common/base": ("common/base",),
    "common/json": ("common/base", "common/json"),
    "common/net": ("common/base", "common/json", "common/net"),
    "common/kube": ("common/base", "common/json", "common/net", "common/kube"),
    "common/obs": ("common/base", "common/net", "common/obs"),
    "controller": ("common", "controller"),
    "gateway": ("common", "gateway"),
    "tests": ("common", "controller", "gateway", "tests"),
}

# Header prefix → the only directories that know the library. Tests may use each of them directly.
DOORS = {
    "json-c/": ("common/json",),
    "curl/": ("common/net",),
    "libwebsockets": ("common/net",),
    "microhttpd": ("common/net",),
    "openssl/": ("common/net",),
    "yaml.h": ("common/kube",),
}


def is_below(path, directory):
    return path == directory or path.startswith(directory + "/")


def home_of(path):
    homes = [d for d in ALLOWED if is_below(path, d)]
    return max(homes, key=len) if homes else None


def check_own(path, name):
    home, folder = home_of(path), os.path.dirname(path)
    if home is None:
        return f"{path} is in no layer"
    if not os.path.exists(os.path.join(lint_common.ROOT, name)):
        return f'includes "{name}", which does not exist below the root'
    if not any(is_below(name, d) for d in ALLOWED[home]):
        return f'includes "{name}"; {home} may include {", ".join(ALLOWED[home])}'
    internal = name.endswith(("-internal.h", "_internal.h"))
    if internal and os.path.dirname(name) != folder and home != "tests":
        return f'includes "{name}", which is internal to {os.path.dirname(name)}'
    return None


def check_library(path, name):
    for prefix, doors in DOORS.items():
        if name.startswith(prefix) and not any(is_below(path, d) for d in doors + ("tests",)):
            return f"includes <{name}>; only {', '.join(doors)} may"
    return None


def check_file(path):
    text = lint_common.read(path)
    problems = []
    for match in INCLUDE.finditer(text):
        kind, name = match.groups()
        problem = check_own(path, name) if kind == '"' else check_library(path, name)
        if problem:
            problems.append(f"{path}:{lint_common.line_of(text, match.start())}: {problem}")
    return problems


def check_itself():
    """The rules must be able to fail."""
    assert check_own("common/base/x.c", "common/json/json.h")
    assert check_own("common/obs/x.c", "common/kube/client.h")
    assert check_own("gateway/x.c", "controller/plan.h")
    assert check_own("controller/x.c", "gateway/main.h")
    assert check_own("other/x.c", "common/base/buf.h")
    assert check_own("common/json/x.c", "common/base/buf.h") is None
    assert check_library("gateway/x.c", "json-c/json.h")
    assert check_library("common/kube/x.c", "curl/curl.h")
    assert check_library("common/net/x.c", "curl/curl.h") is None


if __name__ == "__main__":
    check_itself()
    paths = lint_common.files(lint_common.C_DIRS, ".c", ".h")
    lint_common.finish([p for path in paths for p in check_file(path)], len(paths), "C files")
