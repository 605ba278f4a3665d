"""Put a finished run's draft and its two ancestors into the package, with their checksums.

python -m training.publish --run main
"""

from __future__ import annotations

import argparse
import json
import shutil
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from specdec_lab.draft_model import EMBEDDED_DRAFTS, FOLDER, LIST, StoredDraft
from specdec_lab.files import replacing
from specdec_lab.weights import sha256_of
from training.distill import ANCESTORS
from training.teacher import cache_folder

RESULTS = Path(__file__).parent / "results"


def publish(run: Path) -> list[StoredDraft]:
    """Copy a finished run's drafts and its curve: all of them, or nothing.

    Raises:
        SystemExit: if the run is not finished.
    """
    _require_finished(run)
    stages = dict(zip(EMBEDDED_DRAFTS, ("draft", *reversed(ANCESTORS)), strict=True))
    drafts = []
    with ExitStack() as whole:
        for name, stage in stages.items():
            file = FOLDER / f"{name}.safetensors"
            shutil.copyfile(run / f"{stage}.safetensors", part := whole.enter_context(replacing(file)))
            trained = f", {ANCESTORS[stage]:.0%} trained" if stage in ANCESTORS else ""
            title = f"draft distilled from SmolLM2-135M-Instruct{trained}"
            drafts.append(StoredDraft(name, title, file.name, sha256_of(part)))
        part = whole.enter_context(replacing(LIST))
        part.write_text(json.dumps([asdict(one) for one in drafts], indent=1) + "\n", encoding="utf-8")
        curve = {
            "sha256": drafts[0].sha256,
            "points": json.loads((run / "curve.json").read_text(encoding="utf-8")),
        }
        part = whole.enter_context(replacing(RESULTS / "curve.json"))
        part.write_text(json.dumps(curve) + "\n", encoding="utf-8")
    return drafts


def _require_finished(run: Path) -> None:
    curve = json.loads((run / "curve.json").read_text(encoding="utf-8"))
    if "stored" not in curve[-1]:
        raise SystemExit(f"{run}: got a run that is not at its end, expected a finished one")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--run", default="main")
    run = cache_folder() / parser.parse_args().run
    print(f"published from {run}: {', '.join(one.name for one in publish(run))}")


if __name__ == "__main__":
    main()
