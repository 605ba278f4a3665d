"""Where the course lies: the folder with ``notebooks/``, and what is in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MARK = "nbgrader_config.py"


class CourseError(RuntimeError):
    """The course's files are not as a command needs them; the message says what to do."""


@dataclass(frozen=True)
class Course:
    """A checkout of the course (or the learners' archive of it, which has no ``solutions/``)."""

    root: Path

    @property
    def solutions(self) -> Path:
        return self.root / "solutions"

    @property
    def notebooks(self) -> Path:
        return self.root / "notebooks"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def quizzes(self) -> Path:
        return Path(__file__).parents[1] / "checks" / "quizzes"

    def source(self, name: str) -> Path:
        return self.solutions / name / f"{name}.py"

    def key(self, name: str) -> Path:
        return self.solutions / name / f"{name}.ipynb"

    def release(self, name: str) -> Path:
        return self.notebooks / name / f"{name}.ipynb"

    def working_copy(self, name: str) -> Path:
        return self.work / name / f"{name}.ipynb"

    def require_solutions(self) -> None:
        """Raise ``CourseError`` in the learners' archive, which has no answer keys."""
        if not self.solutions.is_dir():
            raise CourseError(f"no solutions/ in {self.root}: expected the instructor's files")

    def written(self) -> list[str]:
        """Names of the assignments that have a source, in order."""
        return sorted(file.parent.name for file in self.solutions.glob("*/*.py"))

    def released(self) -> list[str]:
        """Names of the assignments that learners get, in order."""
        return sorted(file.parent.name for file in self.notebooks.glob("*/*.ipynb"))

    def choose(self, wanted: str | None, among: list[str]) -> list[str]:
        """The assignments meant by ``wanted``: a name, its number, a part of it, or None for all.

        Raises:
            CourseError: if none or several match; the message lists what there is.
        """
        if wanted is None:
            return among
        exact = [name for name in among if name == wanted]
        matching = exact or [name for name in among if wanted in name]
        if len(matching) != 1:
            raise CourseError(
                f"NAME: got {wanted!r}, expected one of {', '.join(among) or '(there are none)'}"
            )
        return matching


def find_course(start: Path | None = None) -> Course:
    """The course around ``start`` (the current folder), else the checkout that this library runs from.

    Raises:
        CourseError: if neither is inside the course.
    """
    here = (start or Path.cwd()).resolve()
    checkout = Path(__file__).resolve().parents[2]
    for folder in (here, *here.parents, checkout):
        if (folder / MARK).is_file() and (folder / "notebooks").is_dir():
            return Course(folder)
    raise CourseError(
        f"no course around {here}: expected a folder with {MARK} and notebooks/; go there first"
    )
