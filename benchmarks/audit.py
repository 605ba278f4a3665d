"""How many paths the exhaustive audit walks, and how long it takes.

    python -m benchmarks.audit [--quick] [--out FILE]

Audits ``speculative()`` with a draft model on toy models of growing vocabulary, four new tokens, draft
length three. Writes the results as JSON with their provenance, and the table of docs/audit.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from specdec_lab.audit.own import audit_own_decoder
from specdec_lab.provenance import provenance

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "audit.json"
GUIDE = ROOT / "docs" / "audit.md"
BEGIN, END = "<!-- costs: written by benchmarks/audit.py -->", "<!-- end of costs -->"
VOCABULARIES = (3, 4, 5)
LENGTH, GAMMA = 4, 3


def measure(vocabularies: tuple[int, ...]) -> dict[str, Any]:
    """Audit the library's decoder on each vocabulary."""
    runs = []
    for vocab in vocabularies:
        audit = audit_own_decoder(vocab, LENGTH, GAMMA, progress=True, max_paths=10**7)
        runs.append({"vocab": vocab, "length": LENGTH, "gamma": GAMMA} | audit.to_json())
    return {"provenance": provenance(None, None), "runs": runs}


def table(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = [
        "| vocabulary | new tokens | draft length | paths | seconds | L1 |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {run['vocab']} | {run['length']} | {run['gamma']} | {run['paths']:,} "
        f"| {run['seconds']:.0f} | {run['l1_error']:.0e} |"
        for run in results["runs"]
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, save, and write the table into the guide."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the smallest vocabulary only; print it")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE")
    options = parser.parse_args()
    results = measure(VOCABULARIES[:1] if options.quick else VOCABULARIES)
    print(table(results))
    if options.quick:
        return
    options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if options.out == RESULTS:
        guide = GUIDE.read_text(encoding="utf-8")
        before, rest = guide.split(BEGIN)
        after = rest.split(END)[1]
        GUIDE.write_text(f"{before}{BEGIN}\n{table(results)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
