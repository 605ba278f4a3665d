"""The four cities."""

from fractions import Fraction

import numpy as np
import torch

from specdec_lab.course.mutants import right_value, wrong_value

P, Q = np.array([0.35, 0.40, 0.20, 0.05]), np.array([0.55, 0.25, 0.15, 0.05])


def _answer(**changed):
    right = {
        "acceptance": [0.636, 1, 1, 1],
        "accepted": [0.35, 0.25, 0.15, 0.05],
        "rejection_mass": 0.2,
        "residual": [0, 0.75, 0.25, 0],
        "final": [0.35, 0.40, 0.20, 0.05],
    }
    return right | {name: _list(value) for name, value in changed.items()}


def _list(value):
    return value.tolist() if isinstance(value, np.ndarray) else value


blank = [None] * 4
wrong_value(
    "blank",
    {
        "acceptance": blank,
        "accepted": blank,
        "rejection_mass": None,
        "residual": blank,
        "final": blank,
    },
    says=r"^✗ by_hand: not implemented yet",
)
wrong_value("nothing", None, says="not implemented yet")
wrong_value(
    "cut off",
    _answer(acceptance=[0.63, 1, 1, 1]),
    says="look at Paris again. It is nearly right: round",
)
wrong_value("one entry is blank", _answer(residual=[0, None, 0.25, 0]), says="fill in every entry")
wrong_value("no rejection mass yet", _answer(rejection_mass=None), says="fill in every entry")
wrong_value("one is missing", {"acceptance": [0.64, 1, 1, 1]}, says="the five entries")
wrong_value("values without names", list(_answer().values()), says="the five entries")
wrong_value("three cities", _answer(final=[0.35, 0.4, 0.2]), says='four numbers for "final"')
wrong_value("one number for four", _answer(acceptance=0.8), says='four numbers for "acceptance"')
wrong_value(
    "numbers as text", _answer(accepted=["0.35", "0.25", "0.15", "0.05"]), says='"accepted": .*type str'
)
wrong_value("percentages", _answer(acceptance=[63.6, 100, 100, 100]), says="not percentages")
wrong_value("the mass in percent", _answer(rejection_mass=20), says="not in percent")

wrong_value("q/p", _answer(acceptance=np.minimum(1, Q / P)), says="letters are exchanged")
wrong_value("p/q above 1", _answer(acceptance=P / Q), says="no probability is above 1")
wrong_value(
    "accepted in place of acceptance", _answer(acceptance=[0.35, 0.25, 0.15, 0.05]), says="once it was"
)
wrong_value("q/p above 1", _answer(acceptance=Q / P), says="no probability is above 1: the letters")
wrong_value("p q for acceptance", _answer(acceptance=P * Q), says='"acceptance": that is p times q')
wrong_value("larger for accepted", _answer(accepted=np.maximum(P, Q)), says="the larger of p and q")
wrong_value("scaled accepted", _answer(accepted=np.minimum(P, Q) / 0.8), says="they sum to less")
wrong_value("p q for accepted", _answer(accepted=P * Q), says='"accepted": that is p times q')
wrong_value("q for residual", _answer(residual=Q), says='"residual": that is q')
wrong_value("q - p, as it is", _answer(residual=[0.2, 0, 0, 0]), says="lacking; and divide")
wrong_value("even residual", _answer(residual=[0, 0.5, 0.5, 0]), says="both get the same")
wrong_value("all added", _answer(final=[0.636, 1.75, 1.25, 1]), says="acceptance plus residual")
wrong_value("chance to reject", _answer(acceptance=[0.364, 0, 0, 0]), says="that it is rejected")
wrong_value("hard threshold", _answer(acceptance=[0, 1, 1, 1]), says="kept \\*sometimes\\*")
wrong_value("p for acceptance", _answer(acceptance=P), says="that is p\\.")
wrong_value("slip in one city", _answer(acceptance=[0.636, 1, 0.5, 1]), says="look at Rome again")

wrong_value("not weighted", _answer(accepted=[0.636, 1, 1, 1]), says="has to be drafted first")
wrong_value("weighted with p", _answer(accepted=P * np.minimum(1, P / Q)), says="drawn from q")
wrong_value("all that is drafted", _answer(accepted=Q), says="Not every one is kept")
wrong_value("p for accepted", _answer(accepted=P), says="only as often as it is drafted")

wrong_value("alpha for the mass", _answer(rejection_mass=0.8), says="accepted in all")
wrong_value("Paris alone", _answer(rejection_mass=0.364), says="once Paris was drafted")
wrong_value("unweighted mean", _answer(rejection_mass=0.0909), says="do not count alike")
wrong_value("a slip in the sum", _answer(rejection_mass=0.3), says="add up what is accepted")
wrong_value("L1 distance", _answer(rejection_mass=0.4), says="It counts twice")
wrong_value("weighted with p", _answer(rejection_mass=0.127), says="The token is drawn from q")
wrong_value("literal matching", _answer(rejection_mass=0.675), says="how often two draws differ")
wrong_value("a list for the mass", _answer(rejection_mass=[0.2]), says='"rejection_mass": .*list of 1')

wrong_value("not normalised", _answer(residual=[0, 0.15, 0.05, 0]), says="Divide by the sum")
wrong_value("p for residual", _answer(residual=P), says="that is p\\. Some of it has come out")
wrong_value("p - q", _answer(residual=P - Q), says="no probability is negative")
wrong_value("p - q over the sum", _answer(residual=(P - Q) / 0.2), says="cannot be negative")
wrong_value("|p - q|", _answer(residual=abs(P - Q) / 0.4), says="not \\|p - q\\|")
wrong_value("|p - q|, not normalised", _answer(residual=abs(P - Q)), says="not \\|p - q\\|.*divide")
wrong_value("q - p", _answer(residual=[1, 0, 0, 0]), says="what the draft has too much of")
wrong_value(
    "p without Paris", _answer(residual=[0, 0.6154, 0.3077, 0.0769]), says="p with Paris struck out"
)
wrong_value("argmax of the residual", _answer(residual=[0, 1, 0, 0]), says="largest entry only")

wrong_value("no replacements", _answer(final=[0.35, 0.25, 0.15, 0.05]), says="replacements are missing")
wrong_value("unweighted residual", _answer(final=[0.35, 1.0, 0.40, 0.05]), says="only if something was")
wrong_value("accepted twice", _answer(final=[0.70, 0.65, 0.35, 0.10]), says="accepted twice")
wrong_value("q for final", _answer(final=Q), says="What is rejected is replaced")
wrong_value(
    "resampled from p",
    _answer(final=[0.42, 0.33, 0.19, 0.06]),
    says="drawn again from p after a rejection",
)
wrong_value("scaled up", _answer(final=[0.4375, 0.3125, 0.1875, 0.0625]), says="scaled up to 1")
wrong_value("replacements only", _answer(final=[0, 0.15, 0.05, 0]), says="only what comes out as a")

right_value("three decimals", _answer())
right_value("two decimals", _answer(acceptance=[0.64, 1.0, 1.0, 1.0]))
right_value(
    "fractions",
    _answer(acceptance=[Fraction(7, 11), 1, 1, 1], rejection_mass=Fraction(1, 5), final=P),
)
right_value(
    "tensors and arrays",
    _answer() | {"final": torch.tensor([0.35, 0.40, 0.20, 0.05]), "accepted": np.minimum(P, Q)},
)
right_value("tuples, another order", {name: _answer()[name] for name in sorted(_answer())})
right_value("expressions", _answer(acceptance=(0.35 / 0.55, 1, 1, 1), rejection_mass=1 - 0.8))
