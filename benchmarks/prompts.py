"""Prompts of different kinds, so that no measurement rests on one text; written for this project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["copy", "summarise", "code", "continue", "chat", "list", "dialogue"]


@dataclass(frozen=True)
class Prompt:
    """A text to continue; ``chat`` wraps it in the model's chat template.

    Prompts of the kind "copy" are ones at which the 135M model does copy, with few changes.
    """

    name: str
    kind: Kind
    text: str
    chat: bool = False


RIVER = (
    "The river rises in the hills above the old mill and runs south for ninety kilometres. In spring "
    "it floods the meadows, and the farmers move their sheep to higher ground. In summer children swim "
    "below the bridge. The town at its mouth was built by boat makers, and the boat makers' quarter "
    "still smells of tar."
)
RULES = (
    "Rule 1: wash your hands before you touch the samples. Rule 2: label every tube with the date and "
    "your initials. Rule 3: write down the temperature of the freezer each morning. Rule 4: never "
    "leave the door open. Rule 5: tell the person on duty when something breaks."
)
RECIPE = (
    "Heat the oven to 200 degrees. Cut the onions into thin rings and fry them in butter until they "
    "are brown. Add the flour and stir for two minutes. Pour in the stock, a little at a time, and let "
    "the soup simmer for half an hour."
)
MEAN = "def mean(values):\n    total = 0.0\n    for value in values:\n        total += value\n"

PROMPTS = (
    Prompt("copy river", "copy", f"Repeat word for word: {RIVER}", chat=True),
    Prompt("copy recipe", "copy", f"Repeat this text exactly as it is: {RECIPE}", chat=True),
    Prompt(
        "copy once more",
        "copy",
        f"{RIVER}\n\nThe same text once more, without any change:\n\nThe river rises in the hills",
    ),
    Prompt("summarise river", "summarise", f"Summarize in two sentences: {RIVER}", chat=True),
    Prompt(
        "summarise rules", "summarise", f"Summarize these rules in one sentence: {RULES}", chat=True
    ),
    Prompt("finish function", "code", MEAN),
    Prompt("write function", "code", "Write a Python function that reverses a string.", chat=True),
    Prompt("loop", "code", "for i in range(10):\n    print(i)\nfor j in range(10):\n    print("),
    Prompt("json", "code", '[{"id": 1, "name": "Ada"}, {"id": 2, "name": "Ben"}, {"id": 3,'),
    Prompt("capital", "continue", "The capital of France is"),
    Prompt("story", "continue", "Once upon a time there was a fox who"),
    Prompt("science", "continue", "Water boils at a lower temperature on a mountain because"),
    Prompt("history", "continue", "The printing press changed Europe in three ways. First,"),
    Prompt("explain", "chat", "Explain why the sky is blue to a child.", chat=True),
    Prompt("advice", "chat", "How do I keep basil alive on a window sill?", chat=True),
    Prompt("sum", "chat", "What is 17 plus 25? Explain each step.", chat=True),
    Prompt("planets", "list", "List the planets of the solar system.", chat=True),
    Prompt("counting", "list", "1, 2, 3, 4, 5, 6, 7, 8,"),
    Prompt("weekdays", "list", "Monday is 1. Tuesday is 2. Wednesday is 3."),
    Prompt(
        "interview",
        "dialogue",
        "Reporter: Where did you grow up?\nWriter: In a small town.\n"
        "Reporter: What did you read?\nWriter:",
    ),
)
