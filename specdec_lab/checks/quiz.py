"""The quiz at the end of each notebook.

What is shipped names no answer: each question carries a salted hash of the right letter, and each
option's explanation is masked with a key made from the letter. Whoever wants to break that can; it
keeps an eye that slips from seeing the answers.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from specdec_lab.checks.failure import CheckFailed

LETTERS = "abcdefgh"
FOLDER = Path(__file__).parent / "quizzes"


@dataclass
class Question:
    """A question as its author writes it; ``right`` is the place of the right option."""

    text: str
    options: list[str]
    explanations: list[str]
    right: int


def seal(name: str, questions: list[Question]) -> dict[str, Any]:
    """The questions with hashes for answers and masked explanations."""
    sealed = []
    for place, question in enumerate(questions, start=1):
        salt = hashlib.sha256(f"{name}/{place}/{question.text}".encode()).hexdigest()[:16]
        sealed.append(
            {
                "question": question.text,
                "options": question.options,
                "salt": salt,
                "answer": _hash(salt, LETTERS[question.right]),
                "explanations": [
                    _mask(salt, letter, text.encode())
                    for letter, text in zip(LETTERS, question.explanations, strict=False)
                ],
            }
        )
    return {"quiz": name, "questions": sealed}


def grade(name: str, answers: object, points: float) -> float | None:
    """Say of each answer whether it is right, and why; return the points for nbgrader.

    Args:
        name: the notebook's.
        answers: question number -> letter.
        points: what the whole quiz is worth; each question is worth the same. 0: not graded.

    Returns:
        The points earned; None where the quiz is not graded.

    Raises:
        CheckFailed: for answers in another form, or none at all.
    """
    questions = load(name)
    given = _letters(answers, questions)
    right = 0
    for place, question in enumerate(questions, start=1):
        letter = given[place]
        if not letter:
            print(f"{place}.    no answer yet")
            continue
        good = _hash(question["salt"], letter) == question["answer"]
        right += good
        why = _unmask(question["salt"], letter, question["explanations"][LETTERS.index(letter)])
        print(f"{place}. {'✓' if good else '✗'} {letter}: {why}")
    print(f"\n{right} of {len(questions)} right")
    return points * right / len(questions) if points else None


def load(name: str) -> list[dict[str, Any]]:
    """The shipped questions of a notebook."""
    quiz = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    questions: list[dict[str, Any]] = quiz["questions"]
    return questions


def _letters(answers: object, questions: list[dict[str, Any]]) -> dict[int, str]:
    """The letter given to each question; empty where there is none, or something else than a letter."""
    if type(answers) is not dict:
        raise CheckFailed(
            "quiz", f"answers is {type(answers).__name__}, expected a dict of numbers and letters"
        )
    given = {}
    for place, question in enumerate(questions, start=1):
        letter = answers.get(place, "")
        text = letter.strip().lower() if type(letter) is str else ""
        allowed = LETTERS[: len(question["options"])]
        if letter != "" and text not in [*allowed]:
            print(f"{place}.    got {letter!r:.40}, expected a letter from a to {allowed[-1]}")
            text = ""
        given[place] = text
    others = [key for key in answers if key not in given]
    if others and not any(given.values()):
        raise CheckFailed(
            "quiz",
            f"answers has the keys {others!r:.60}, expected the numbers 1 to {len(questions)}",
        )
    if not any(given.values()):
        raise CheckFailed(
            "quiz", "not implemented yet: put a letter for each question in the cell above"
        )
    return given


def _hash(salt: str, letter: str) -> str:
    return hashlib.sha256(f"{salt}/answer/{letter}".encode()).hexdigest()


def _mask(salt: str, letter: str, text: bytes) -> str:
    return base64.b64encode(_xor(text, f"{salt}/why/{letter}")).decode()


def _unmask(salt: str, letter: str, masked: str) -> str:
    return _xor(base64.b64decode(masked), f"{salt}/why/{letter}").decode()


def _xor(data: bytes, key: str) -> bytes:
    stream = bytearray()
    for block in count():
        if len(stream) >= len(data):
            break
        stream += hashlib.sha256(f"{key}/{block}".encode()).digest()
    return bytes(a ^ b for a, b in zip(data, stream, strict=False))
