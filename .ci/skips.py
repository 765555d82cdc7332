"""Print every skipped test with its reason, and fail if one of them could have run here.

Usage: skips.py JUNIT_XML. A skip is fair only where the thing that the test needs is really absent; the
table below says how to find out. A reason that the table does not know is never fair.
"""

import os
import shutil
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from importlib.util import find_spec
from pathlib import Path


def takes_any_name() -> bool:
    """Say whether files may have names that are not UTF-8 here."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            (Path(folder) / os.fsdecode(b"\xff")).touch()
        except OSError:
            return False
    return True


REPOSITORY = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("BENCHMIRT_DATA", REPOSITORY.parent / "shared" / "data"))
SAMPLES = Path(os.environ.get("BENCHMIRT_SAMPLES", REPOSITORY.parent / "shared" / "samples"))
PRESENT = {
    "no real response tables": (DATA / "korbench" / "responses.csv.gz").is_file(),
    "no sample files": (SAMPLES / "lm_eval").is_dir(),
    "the file system takes UTF-8 only": takes_any_name(),
    "one core only": len(os.sched_getaffinity(0)) > 1 if hasattr(os, "sched_getaffinity") else True,
    "no conda": shutil.which("conda") is not None,
    "no Slurm": shutil.which("sbatch") is not None,
    "could not import 'datasets'": find_spec("datasets") is not None,
    "could not import 'math_verify'": find_spec("math_verify") is not None,
}


def main() -> int:
    """Return the exit status: 1 if a test was skipped without need."""
    unfair = 0
    skipped = 0
    for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
        for skip in case.iter("skipped"):
            reason = skip.get("message") or ""
            known = [present for text, present in PRESENT.items() if text in reason]
            fair = bool(known) and not any(known)
            skipped += 1
            unfair += not fair
            mark = "skipped" if fair else "SKIPPED WITHOUT NEED"
            print(f"{mark}: {case.get('classname')}::{case.get('name')}: {reason}")
    print(f"{skipped} skipped, {unfair} of them without need")
    return 1 if unfair else 0


if __name__ == "__main__":
    sys.exit(main())
