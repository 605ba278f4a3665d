"""Release: the learners' archive, which holds the course without the answer keys."""

from __future__ import annotations

import zipfile
from pathlib import Path

from specdec_lab import __version__
from specdec_lab.course.folder import Course, CourseError
from specdec_lab.files import replacing

LEFT_OUT = ("solutions", "tests", "training")
"""Folders that learners do not get."""
_PARTS = (
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "Makefile",
    "NOTICE",
    "README.md",
    "constraints.txt",
    "environment.yml",
    "nbgrader_config.py",
    "pyproject.toml",
    "benchmarks",
    "docs",
    "notebooks",
    "specdec_lab",
)
_NEVER = {"__pycache__", ".ipynb_checkpoints", ".DS_Store"}
_EPOCH = (2020, 1, 1, 0, 0, 0)


def archive(course: Course, file: Path | None = None) -> Path:
    """Write the learners' archive; the same content gives the same bytes.

    Returns:
        Where it is: ``dist/specdec-lab-course-VERSION.zip`` unless ``file`` says otherwise.

    Raises:
        CourseError: if a part of the course is missing.
    """
    folder = f"specdec-lab-course-{__version__}"
    file = file or course.root / "dist" / f"{folder}.zip"
    missing = [part for part in _PARTS if not (course.root / part).exists()]
    if missing:
        raise CourseError(f"{course.root} lacks {', '.join(missing)}")
    with replacing(file) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as bundle:
        for path in sorted(_files(course.root)):
            entry = zipfile.ZipInfo(f"{folder}/{path.relative_to(course.root).as_posix()}", _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            bundle.writestr(entry, path.read_bytes())
    return file


def _files(root: Path) -> list[Path]:
    found = []
    for part in _PARTS:
        path = root / part
        inside = path.rglob("*") if path.is_dir() else [path]
        found += [one for one in inside if one.is_file() and not _NEVER & set(one.parts)]
    return found
