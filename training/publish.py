"""Put a finished run's draft and its two ancestors into the package, with their checksums.

python -m training.publish --run main
"""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import asdict
from pathlib import Path

from specdec_lab.draft_model import FOLDER, LIST, StoredDraft
from specdec_lab.files import replacing
from specdec_lab.weights import sha256_of
from training.teacher import cache_folder

RESULTS = Path(__file__).parent / "results"
TITLES = {"draft": "", "middle": ", 15 % trained", "early": ", 2 % trained"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--run", default="main")
    run = cache_folder() / parser.parse_args().run
    drafts = []
    for stage, trained in TITLES.items():
        name = "embedded" if stage == "draft" else f"embedded-{stage}"
        file = FOLDER / f"{name}.safetensors"
        with replacing(file) as part:
            shutil.copyfile(run / f"{stage}.safetensors", part)
        title = f"draft distilled from SmolLM2-135M-Instruct{trained}"
        drafts.append(StoredDraft(name, title, file.name, sha256_of(file)))
    with replacing(LIST) as part:
        part.write_text(json.dumps([asdict(one) for one in drafts], indent=1) + "\n", encoding="utf-8")
    with replacing(RESULTS / "curve.json") as part:
        shutil.copyfile(run / "curve.json", part)
    print(f"published from {run}: {', '.join(one.name for one in drafts)}")


if __name__ == "__main__":
    main()
