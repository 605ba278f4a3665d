"""Start: a learner's working copy in ``work/``, which nothing here ever overwrites."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from specdec_lab.course.folder import Course
from specdec_lab.files import replacing


@dataclass(frozen=True)
class Started:
    """What became of one assignment: its working copy, whether it is new, where an old one went."""

    name: str
    file: Path
    new: bool
    kept_aside: Path | None = None


def start(course: Course, name: str, *, fresh: bool = False) -> Started:
    """Copy an assignment to ``work/`` unless it is there already.

    Args:
        course: where.
        name: the assignment's.
        fresh: begin anew; the old copy is moved aside, not deleted.
    """
    folder = course.work / name
    aside = None
    if folder.exists() and fresh:
        stamp = datetime.now().strftime("%Y-%m-%d-%H%M%S")
        aside = course.work / f"{name}.before-{stamp}"
        folder.rename(aside)
    file = course.working_copy(name)
    if file.exists():
        return Started(name, file, new=False)
    with replacing(file) as part:
        shutil.copyfile(course.release(name), part)
    return Started(name, file, new=True, kept_aside=aside)
