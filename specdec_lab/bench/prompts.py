"""Six kinds of prompts, eight of each: what speed is measured on.

The kinds are those of Spec-Bench (Xia et al. 2024, arXiv 2401.07851); the prompts were written for this
project, for a model of 135 million parameters. All are chat turns.
"""

from __future__ import annotations

from typing import Literal

KindOfSix = Literal[
    "conversation", "translation", "summarising", "questions", "mathematics", "retrieval"
]

CONVERSATION = (
    "My grandmother gave me her old sewing machine. How do I find out whether it still works?",
    "I have been asked to give a talk to forty beekeepers and I know nothing about bees. Help!",
    "Why do cats bring dead mice into the house?",
    "I would like to write postcards again. What could I put on them?",
    "Two of my colleagues do not speak to each other any more. Should I get involved?",
    "What would you take along on a night train across Europe?",
    "Make up a superstition that sailors might believe in, and tell me where it comes from.",
    "Our village wants to plant a forest. Where should we start?",
)
TRANSLATION = tuple(
    f"Translate into English: {sentence}"
    for sentence in (
        "Der Zug nach Hamburg fährt heute von Gleis sieben ab.",
        "Meine Schwester hat im Garten einen alten Schlüssel gefunden.",
        "Wir haben gestern Abend lange über das Wetter gesprochen.",
        "La boulangerie au coin de la rue ouvre à six heures du matin.",
        "Les enfants ont peur du chien de notre voisin.",
        "El museo está cerrado los lunes, pero el jardín está abierto.",
        "Mi abuelo trabajó cuarenta años en una fábrica de zapatos.",
        "La nave arriva nel porto prima di mezzanotte.",
    )
)
PASSAGES = (
    "The lighthouse on Gull Rock was built in 1871 after three ships had been lost there in a "
    "single winter. Its keepers lived on the rock for six weeks at a time. They kept goats and a "
    "small garden in soil that had been carried over from the mainland in sacks. The light was "
    "made automatic in 1968, and the last keeper, Ewan Reid, became a postman. Today the tower "
    "can be visited in summer, when the sea is calm enough for the boat to land.",
    "Sourdough bread is raised by wild yeast and bacteria that live in a mixture of flour and "
    "water, the starter. The baker feeds the starter with fresh flour every day. The bacteria "
    "make acids, which give the bread its sour taste and keep it from going mouldy. Because wild "
    "yeast works slowly, the dough needs many hours to rise. Bakers who are in a hurry add yeast "
    "from a packet, but then the bread tastes of little.",
    "The town council of Marlow voted on Tuesday to close the High Street to cars on weekends. "
    "Shop owners had argued that customers would stay away. The council pointed to the town of "
    "Henley, where sales rose by nine per cent after a similar step. Buses will stop at the "
    "church instead of the market hall. The new rule begins in April and will be looked at again "
    "after a year.",
    "Earthworms pull dead leaves into their tunnels and eat them. What they leave behind is rich "
    "in minerals that plants need. Their tunnels let air and water into the soil, so that roots "
    "can grow deeper. In a good meadow there may be two hundred worms under every square metre. "
    "Ploughing kills many of them, which is one reason why some farmers have stopped to plough.",
    "Ada Blackwell opened her repair shop in 1989 with one screwdriver and a borrowed table. At "
    "first people brought her radios, later computers, and now mostly telephones. She refuses to "
    "repair anything that its owner has not tried to open. She says that half of all broken "
    "things only need to be cleaned. Her shop has trained eleven apprentices, and four of them "
    "have shops of their own.",
    "A glacier is a river of ice. Snow that falls on high mountains is pressed into ice by the "
    "snow that falls on top of it. When the ice is thick enough, its own weight makes it flow "
    "downhill, a few centimetres to a few metres a day. It carries stones along and grinds the "
    "valley wide. Where the ice melts faster than it flows, the glacier ends, and a stream of "
    "grey water begins.",
    "The night market opens at seven in the evening. The first rows sell vegetables, the next "
    "ones clothes, and behind the fountain there is food from eleven countries. Musicians may "
    "play until ten o'clock. Dogs must be kept on a lead. Visitors are asked to come by tram, "
    "because the car park is used by the stalls. In rain the market moves into the old bus "
    "garage.",
    "Before there were refrigerators, ice was cut from frozen lakes in winter and kept in houses "
    "with thick walls, packed in straw and sawdust. Kept well, it lasted until autumn. In the "
    "nineteenth century ships carried ice from Norway to London and from Boston to India. On the "
    "way to India half of it melted, and the rest was still worth more than the voyage had cost.",
)
SUMMARISING = tuple(
    f"{instruction} {passage}"
    for instruction, passage in zip(
        (
            "Sum up this text in two sentences:",
            "Give the main points of the following text:",
            "Write a short summary of this report:",
            "Sum up this text in two sentences:",
            "Write a short summary of this portrait:",
            "Give the main points of the following text:",
            "Sum up these rules in two sentences:",
            "Write a short summary of this text:",
        ),
        PASSAGES,
        strict=True,
    )
)
QUESTIONS = (
    "What is the largest planet of our solar system?",
    "Who wrote the play Romeo and Juliet, and when?",
    "What are the three states of matter?",
    "At which temperature does iron melt?",
    "Which organ pumps blood through the human body, and how does it work?",
    "In which year did the first human being walk on the moon?",
    "What do plants need to make sugar from sunlight?",
    "Which ocean lies between Africa and Australia?",
)
MATHEMATICS = (
    "A farmer has 12 cows and sells 5 of them. Then he buys 9 more. How many cows does he have now?",
    "A book costs 14 dollars and a pen costs 3 dollars. What do two books and four pens cost together?",
    "A train travels 60 kilometres in one hour. How far does it travel in three and a half hours?",
    "Lena reads 20 pages every day. How many days does she need for a book of 260 pages?",
    "There are 24 pupils in a class. A third of them walk to school. How many of them do not walk?",
    "A recipe for 4 people needs 300 grams of rice. How much rice do 10 people need?",
    "Sam has twice as many marbles as Kim. Together they have 36 marbles. How many has each of them?",
    "A shirt costs 40 dollars. Its price is lowered by 25 per cent. What does it cost now?",
)
RETRIEVAL = tuple(
    "Answer the question from these passages, and quote the sentence that says so.\n\n"
    f"Passage 1: {PASSAGES[first]}\n\nPassage 2: {PASSAGES[second]}\n\nQuestion: {question}"
    for first, second, question in (
        (0, 5, "What did the last keeper of the lighthouse become?"),
        (1, 3, "Why does the dough need many hours to rise?"),
        (2, 6, "Where will buses stop instead of the market hall?"),
        (3, 7, "How many worms may there be under a square metre of a good meadow?"),
        (4, 1, "What does Ada Blackwell say about broken things?"),
        (5, 2, "How fast does a glacier flow?"),
        (6, 4, "Where does the night market move when it rains?"),
        (7, 0, "In what was ice packed so that it lasted until autumn?"),
    )
)
SIX_KINDS: dict[KindOfSix, tuple[str, ...]] = {
    "conversation": CONVERSATION,
    "translation": TRANSLATION,
    "summarising": SUMMARISING,
    "questions": QUESTIONS,
    "mathematics": MATHEMATICS,
    "retrieval": RETRIEVAL,
}
"""Kind -> its prompts, each a user's chat turn."""
