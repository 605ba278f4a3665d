"""The letters that were chosen in the quiz's view: ``answers.json``, beside the notebook.

The file is handed in with the notebook, so what is read may be anything at all: whatever is wrong with
it is said, and never raised.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from specdec_lab.files import replacing

FILE = "answers.json"
LONGEST = 100_000
"""Bytes that are read at most; five answers take a hundred."""
_COURSE = "nbgrader_config.py"
"""This file lies at the top of the course."""
_NOT_KEPT_IN = ("solutions", "notebooks", "submitted", "autograded")


@dataclass(frozen=True)
class Chosen:
    """What ``answers.json`` says.

    Args:
        letters: question number -> letter, where there is a sound one.
        problem: what is wrong with the file, for a reader; empty if nothing is.
    """

    letters: dict[int, str]
    problem: str = ""


def read(folder: Path, quiz: str, allowed: Mapping[int, str]) -> Chosen:
    """The choices kept in a folder.

    Args:
        folder: the notebook's.
        quiz: whose choices; another quiz's do not count.
        allowed: question number -> its letters.
    """
    file = folder / FILE
    if not os.path.lexists(file):
        return Chosen({})
    try:
        data = json.loads(_text(file))
    except RecursionError:
        return Chosen({}, f"{FILE} is not used: it is nested too deeply")
    except OSError as error:
        return Chosen({}, f"{FILE} is not used: it cannot be read ({error.strerror})")
    except ValueError as error:
        return Chosen({}, f"{FILE} is not used: {error}")
    if not isinstance(data, dict) or set(data) != {"quiz", "answers"}:
        return Chosen({}, f'{FILE} is not used: expected {{"quiz": ..., "answers": ...}} in it')
    if data["quiz"] != quiz:
        got = _said(data["quiz"])
        return Chosen({}, f"{FILE} is not used: it is for the quiz {got}, expected {quiz!r}")
    if not isinstance(data["answers"], dict):
        got = _said(data["answers"])
        return Chosen({}, f"{FILE} is not used: its answers are {got}, expected numbers with letters")
    return _sound(data["answers"], allowed)


def keep(folder: Path, quiz: str, letters: Mapping[int, str], *, aside: bool) -> Path | None:
    """Write the choices.

    Args:
        folder: the notebook's.
        quiz: whose choices.
        letters: question number -> letter.
        aside: keep what was there before under another name.

    Returns:
        Where the old file went; None if it was replaced, or none was there.

    Raises:
        OSError: if the file cannot be written; the old one is still there, perhaps under another name.
    """
    file = folder / FILE
    data = {"quiz": quiz, "answers": {str(number): letters[number] for number in sorted(letters)}}
    with replacing(file) as part:
        part.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        # Only now that there is another to take its place.
        return _put_aside(file) if aside and os.path.lexists(file) else None


def why_not_kept(folder: Path) -> str:
    """Why choices made in this folder are not written; empty if they are.

    Whatever lies beside an answer key goes into the release, and over what each learner hands in.
    """
    for root in folder.parents:
        if (root / _COURSE).is_file():
            part = folder.relative_to(root).parts[0]
            return f"{part}/ is not a place to work in" if part in _NOT_KEPT_IN else ""
    return ""


def letter_in(value: object, allowed: str) -> str:
    """The letter that a value means; empty if it is none of those allowed."""
    text = value.strip().lower() if type(value) is str else ""
    return text if text in [*allowed] else ""


def _text(file: Path) -> str:
    if file.is_symlink() or not file.is_file():
        raise ValueError("it is a link or a folder, expected a file")
    with file.open("rb") as opened:
        data = opened.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise ValueError(f"it is longer than {LONGEST} bytes")
    return data.decode("utf-8-sig")


def _sound(answers: dict[str, Any], allowed: Mapping[int, str]) -> Chosen:
    numbers = {str(number): number for number in allowed}
    letters: dict[int, str] = {}
    problem = ""
    for key, value in answers.items():
        letter = letter_in(value, allowed[numbers[key]]) if key in numbers else ""
        if letter:
            letters[numbers[key]] = letter
        elif value != "" or key not in numbers:
            problem = f"not used from {FILE}: {_said(key)}: {_said(value)}"
    return Chosen(letters, problem)


def _said(value: object) -> str:
    """A value in a few words; the repr of a nested one may be endless."""
    return repr(value[:40]) if isinstance(value, str) else f"a {type(value).__name__}"


def _put_aside(file: Path) -> Path:
    names = (f"{file.name}.bak{number if number > 1 else ''}" for number in count(1))
    free = next(path for path in map(file.with_name, names) if not os.path.lexists(path))
    return file.rename(free)
