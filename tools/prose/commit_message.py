"""Check a commit message: commit_message.py FILE.

The subject has at most 72 characters, begins with a verb in the imperative, and has no full stop. An empty
line separates it from the body.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LONGEST_SUBJECT = 72
GENERATED = re.compile(r'(Merge|Revert "|fixup! |squash! )')
NOT_IMPERATIVE = re.compile(
    r"(\w+(ed|ing)|A|An|The|That|This|These|It|What|How|Some|More|Now|No|Also)\b", re.IGNORECASE
)
# Verbs in the imperative with the ending of a participle.
VERBS = {"bring", "embed", "feed", "need", "seed", "shed", "speed", "string", "exceed", "proceed"}


def faults(message: str) -> list[str]:
    """Return the faults of a commit message."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if GENERATED.match(subject):
        return []
    if not subject.strip():
        return ["the subject is empty: write one line that states the change"]
    problems = []
    if len(subject) > LONGEST_SUBJECT:
        problems.append(
            f"the subject has {len(subject)} characters: shorten it to {LONGEST_SUBJECT}, or use the body"
        )
    first = re.split(r"\W", subject)[0]
    if NOT_IMPERATIVE.fullmatch(first) and first.lower() not in VERBS:
        problems.append(
            f'the subject begins with "{first}": begin with a verb in the imperative, such as Add or Fix'
        )
    if not subject[0].isupper():
        problems.append(f'the subject begins with "{subject[0]}": begin with a capital letter')
    if subject.endswith("."):
        problems.append("the subject ends with a full stop: remove it")
    if len(lines) > 1 and lines[1].strip():
        problems.append("the second line has text: leave it empty between subject and body")
    return problems


def main(path: str) -> int:
    """Print the faults of the message in a file, and return the exit status."""
    problems = faults(Path(path).read_text())
    for problem in problems:
        print(f"commit message: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
