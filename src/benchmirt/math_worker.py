"""The process that grades mathematical answers with Math-Verify: a JSON object per line in, one per line out.

Run by :mod:`benchmirt.rescoring`, which ends it if an answer takes too long: sympy may think about ``2003^(2002^2001)``
for ever, and the library's own time limit needs the main thread and signals. A request is ``{"gold": TEXT, "answer":
TEXT}``; the reply ``{"verdict": "right" | "wrong" | "unparsed" | "crashed"}``. The first line tells the scorer and the
versions that its verdicts depend on, or what is not installed. The only argument is the limit in seconds: should nobody
be left to end the process, it ends itself some time after.
"""

from __future__ import annotations

import json
import math
import resource
import signal
import sys
from importlib.metadata import version
from typing import Any, TextIO

_MEMORY = 4 << 30  # bytes; a tower of powers fills any memory before it takes any time
_PACKAGES = ("math-verify", "latex2sympy2-extended", "sympy")


def trivial(parsed: list[Any]) -> bool:
    """Say whether an equation or inequality was reduced to 0 or a truth value.

    Different ones can all be parsed to 0, and then each equals each (Math-Verify issue 60).

    Parameters
    ----------
    parsed
        What the library read of an answer: expressions, and the text that they were read from.
    """
    import sympy
    from sympy.logic.boolalg import BooleanAtom

    related = any(mark in text for text in parsed if isinstance(text, str) for mark in "=<>")
    values = [one for one in parsed if isinstance(one, sympy.Basic)]
    return related and any(isinstance(one, BooleanAtom) or one == 0 for one in values)


def grade(gold: str, answer: str) -> str:
    """Return the verdict on an answer; the right answer comes first, since the comparison is not symmetric."""
    from math_verify import parse, verify

    expected = parse(f"\\boxed{{{gold}}}", parsing_timeout=None)
    given = parse(answer, parsing_timeout=None)
    if not expected or not given or trivial(expected) or trivial(given):
        return "unparsed"
    return "right" if verify(expected, given, timeout_seconds=None) else "wrong"


def _reply(out: TextIO, **content: str) -> None:
    out.write(json.dumps(content) + "\n")
    out.flush()


def main() -> None:
    """Answer requests until there are no more."""
    out, sys.stdout = sys.stdout, sys.stderr  # nothing that a library prints is a reply
    try:
        import math_verify  # noqa: F401
    except ImportError as error:
        _reply(out, missing=str(error))
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    name, *needed = (f"{package} {version(package)}" for package in _PACKAGES)
    _reply(out, scorer=f"{name} ({', '.join(needed)})")
    limit = math.ceil(float(sys.argv[1]))
    for line in sys.stdin:
        request = json.loads(line)
        signal.alarm(2 * limit + 5)
        try:
            verdict = grade(request["gold"], request["answer"])
        except (ArithmeticError, MemoryError, RecursionError, TypeError, ValueError):
            verdict = "crashed"
        signal.alarm(0)
        _reply(out, verdict=verdict)


if __name__ == "__main__":
    main()
