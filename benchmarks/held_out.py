"""Prompts that the draft model was neither trained on nor tuned on: what it is judged by.

Written for this project, in other words than the training's prompts (``training/topics.py``); the
trainer leaves out every document whose prompt shares five words in a row with one of these, or with
one of the development chats, by which settings were chosen and which the learning curve shows.
"""

from __future__ import annotations

from benchmarks.prompts import PROMPTS, RECIPE, RULES, Kind, Prompt

DEVELOPMENT_CHATS = (
    "My neighbour's dog barks all night. What can I say to him without starting a fight?",
    "Why do onions make us cry, and how can I stop it?",
    "I want to run five kilometres by June. Where do I begin?",
    "Is it better to rent or to buy a flat in a big city?",
    "What's a good birthday present for a teenager who loves astronomy?",
    "How do airplanes stay in the air?",
    "Plan a rainy afternoon with two small children.",
    "What does a notary do?",
    "I keep forgetting people's names. Any tricks?",
    "Tell my daughter, who is six, where rain comes from.",
    "Which is heavier, a kilo of feathers or a kilo of iron?",
    "Help me apologise to a friend for missing her wedding.",
    "How is paper money protected against forgery?",
    "My bread never rises. What am I doing wrong?",
    "What should I pack for a week in Iceland in March?",
    "Why did people once believe that the sun moved around the earth?",
    "How can a shy person enjoy a party?",
    "Describe the taste of a ripe mango.",
    "What makes a password strong?",
    "I found a wallet on the bus. What is the right thing to do?",
    "How do I remove red wine from a carpet?",
    "Why is the sea salty while lakes are not?",
    "Give advice to someone who starts a new job on Monday.",
    "What happens in the body when we catch a cold?",
    "Write a toast for my parents' fortieth anniversary.",
    "How would you teach a parrot to speak?",
    "What is the use of poetry in hard times?",
    "My laptop gets hot and loud. What can be the reason?",
    "Invent a holiday and say how it is celebrated.",
    "How much water should one drink in a day?",
    "Why do cities put up statues?",
    "Convince me to read more books.",
)
"""Open-ended questions, put as a chat turn: for choosing settings, so not for judging the result."""

CHATS = (
    "What can I cook with half a cabbage and two eggs?",
    "Why does the moon seem larger near the horizon?",
    "My son is afraid of the dark. What helps?",
    "How did sailors find their way before there were satellites?",
    "Suggest a name for a small bakery by the sea, and say why it fits.",
    "What is inflation, and who suffers from it?",
    "I can't fall asleep before two. What should I change?",
    "Describe a thunderstorm to somebody who has never heard one.",
    "How are bridges kept from rusting?",
    "Should I learn the piano at fifty?",
    "Tell me something surprising about octopuses.",
    "What do I say in a letter to my landlord about a leaking tap?",
    "How does a refrigerator get cold inside?",
    "Why are some people left-handed?",
    "My hands shake when I speak in public. Any advice?",
    "Compare living in a village with living in a capital.",
    "What makes a good friend?",
    "How do trees survive a hard frost?",
    "Write a short apology from a cat that broke a vase.",
    "What is the point of a museum?",
    "Can you explain compound interest with an example?",
    "My tomatoes have black spots. What is wrong with them?",
    "How would life change if nobody needed sleep?",
    "Who decides what a word means?",
    "Give me three ideas for a school project about wind.",
    "Why do we laugh?",
    "What should I ask before buying a used bicycle?",
    "How is glass recycled?",
)
"""Open-ended questions, put as a chat turn: what the draft is judged by."""

LETTER = (
    "The library will be closed from Monday to Thursday because the roof is being mended. Books that "
    "are due in these days may be returned a week later. The reading group meets in the school "
    "instead, at the usual hour, and the coffee machine moves there as well."
)
MARKET = (
    "Every Saturday the square fills with stalls before sunrise. The fish seller comes first, then "
    "the two brothers with their apples. By noon the bread is gone, and by three the sweepers have "
    "the place to themselves."
)

_OTHERS: tuple[tuple[Kind, str, bool], ...] = (
    ("copy", f"Repeat word for word: {MARKET}", True),
    ("copy", f"{LETTER}\n\nThe same notice a second time:\n\nThe library will be closed", False),
    ("copy", f"Type out this paragraph once more, letter by letter: {LETTER}", True),
    ("summarise", f"What does this notice say, in a single sentence? {LETTER}", True),
    ("summarise", f"{MARKET}\n\nIn short:", False),
    ("summarise", f"{RECIPE}\n\nTell me in ten words what is being cooked here.", True),
    ("summarise", f"{RULES} Which of these rules matters most, and why?", True),
    ("code", "def fibonacci(n):\n", False),
    ("code", "import csv\n\nwith open('prices.csv') as file:\n", False),
    ("code", "How do I sort a dictionary by its values in Python?", True),
    ("code", "Show me a loop in C that prints the even numbers below 20.", True),
    ("code", "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(", False),
    ("code", "What does `git rebase` do? Show an example.", True),
    ("continue", "The train had already left when Martha reached the platform, so", False),
    ("continue", "Copper conducts electricity well because", False),
    ("continue", "In the winter of 1783 the village", False),
    ("continue", "The committee's report, published on Tuesday, found that", False),
    ("continue", "To repair a flat tyre, first", False),
    ("list", "Name six animals that sleep through the winter.", True),
    ("list", "Which countries border Switzerland?", True),
    ("list", "My shopping list for the week:\n- milk\n-", False),
    ("list", "January has 31 days. February has 28 days. March has", False),
    ("dialogue", "A: Good morning! How can I help you?\nB: I'd like a ticket to Lyon.\nA:", False),
    ("dialogue", "Doctor: What seems to be the trouble?\nPatient: My knee hurts.\nDoctor:", False),
    ("dialogue", '"Are you coming with us?" asked Tom.\n"Not today," said Ruth.\n"', False),
)

HELD_OUT = (
    *PROMPTS,
    *(Prompt(f"chat {i}", "chat", text, chat=True) for i, text in enumerate(CHATS, start=1)),
    *(
        Prompt(f"{kind} held out {i}", kind, text, chat)
        for i, (kind, text, chat) in enumerate(_OTHERS, start=1)
    ),
)
KINDS: tuple[Kind, ...] = ("chat", "continue", "code", "list", "dialogue", "summarise", "copy")
