#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up JUnit files: names what failed or was skipped and why, with the end of what a failed test printed; ends
with one plain line.

usage: summary.py FILE.xml…   Exit status 0 only when something ran and nothing failed.
"""
import sys
import xml.etree.ElementTree as ET

OUTPUT_LINES = 25  # of a failed test
OUTPUT_LINE_LENGTH = 300


def outcome(case):
    """Returns (outcome, text) of a testcase element of ctest's or pytest's JUnit output."""
    for tag, name in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        found = case.find(tag)
        if found is not None:
            return name, (found.get("message") or found.text or "").strip().splitlines()[:1]
    if case.get("status") in ("fail", "disabled", "notrun"):
        return ("failed" if case.get("status") == "fail" else "skipped"), [case.get("status")]
    return "passed", []


def output_end(case):
    """Returns the last lines that a failed test printed: ctest has them in system-out, pytest in the failure."""
    texts = [found.text for tag in ("failure", "error", "system-out", "system-err") for found in case.findall(tag)]
    lines = [line[:OUTPUT_LINE_LENGTH] for text in texts if text for line in text.strip().splitlines()]
    return lines[-OUTPUT_LINES:]


def main(paths):
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for path in paths:
        try:
            root = ET.parse(path).getroot()
        except (OSError, ET.ParseError) as error:
            print(f"FAILED {path}: no result: {error}")
            count["failed"] += 1
            continue
        suite = path.rsplit("/", 1)[-1].removesuffix(".xml")
        for case in root.iter("testcase"):
            what, text = outcome(case)
            count[what] += 1
            if what != "passed":
                print(f"{what.upper()} {suite}: {case.get('classname') or ''} {case.get('name')}: {' '.join(text)[:300]}")
            if what == "failed":
                for line in output_end(case):
                    print(f"   | {line}")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**count))
    return 0 if count["passed"] and not count["failed"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
