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

from specdec_lab.checks import chosen
from specdec_lab.checks.chosen import letter_in
from specdec_lab.checks.failure import CheckFailed

LETTERS = "abcdefgh"
FOLDER = Path(__file__).parent / "quizzes"
NOTHING_YET = (
    "not implemented yet: choose an answer for each question above, or put letters in the cell above"
)


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


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is right, and why."""

    right: bool
    why: str


def grade(name: str, answers: object, points: float) -> float | None:
    """Say of each answer whether it is right, and why; return the points for nbgrader.

    A letter in ``answers`` wins over one in ``answers.json``, in the current folder.

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
    given = _given(name, answers, questions)
    right = 0
    for place, question in enumerate(questions, start=1):
        letter = given[place]
        if not letter:
            print(f"{place}.    no answer yet")
            continue
        verdict = judge(question, letter)
        right += verdict.right
        print(f"{place}. {'✓' if verdict.right else '✗'} {letter}: {verdict.why}")
    print(f"\n{right} of {len(questions)} right")
    return points * right / len(questions) if points else None


def judge(question: dict[str, Any], letter: str) -> Verdict:
    """Whether a letter is the right one of a shipped question, with the explanation of that option."""
    salt = question["salt"]
    why = _unmask(salt, letter, question["explanations"][LETTERS.index(letter)])
    return Verdict(_hash(salt, letter) == question["answer"], why)


def allowed_letters(questions: list[dict[str, Any]]) -> dict[int, str]:
    """Question number -> the letters of its options."""
    return {place: LETTERS[: len(one["options"])] for place, one in enumerate(questions, start=1)}


def names() -> list[str]:
    """The notebooks that have a quiz."""
    return sorted(file.stem for file in FOLDER.glob("*.json"))


def load(name: str) -> list[dict[str, Any]]:
    """The shipped questions of a notebook."""
    quiz = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    questions: list[dict[str, Any]] = quiz["questions"]
    return questions


def _given(name: str, answers: object, questions: list[dict[str, Any]]) -> dict[int, str]:
    """The letter given to each question, typed or chosen; empty where there is none."""
    allowed = allowed_letters(questions)
    typed, slip = _typed(answers, allowed)
    kept = chosen.read(Path(), name, allowed)
    given = {place: typed[place] or kept.letters.get(place, "") for place in allowed}
    if not any(given.values()):
        details = [(chosen.FILE, kept.problem)] if kept.problem else []
        raise CheckFailed("quiz", slip or NOTHING_YET, details)
    from_file = [str(place) for place in allowed if given[place] and not typed[place]]
    if from_file:
        print(f"from {chosen.FILE}, chosen in the quiz above: {', '.join(from_file)}")
    for problem in filter(None, (slip, kept.problem)):
        print(problem)
    return given


def _typed(answers: object, allowed: dict[int, str]) -> tuple[dict[int, str], str]:
    """The letters in the notebook's cell; then what is wrong with its keys, if anything is."""
    if type(answers) is not dict:
        raise CheckFailed(
            "quiz", f"answers is {type(answers).__name__}, expected a dict of numbers and letters"
        )
    typed = {}
    for place, letters in allowed.items():
        value = answers.get(place, "")
        typed[place] = letter_in(value, letters)
        if value != "" and not typed[place]:
            print(f"{place}.    got {value!r:.40}, expected a letter from a to {letters[-1]}")
    others = [key for key in answers if key not in allowed]
    wanted = f"expected the numbers 1 to {len(allowed)}"
    return typed, f"answers has the keys {others!r:.60}, {wanted}" if others else ""


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
