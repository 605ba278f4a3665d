"""Numbers that have to fit each other."""

import numpy as np

from specdec_lab.course.mutants import right_value, wrong_value


def _answer(**changes):
    return {
        "drafter": "draft model",
        "gamma": 2,
        "alpha": 0.5,
        "c": 0.1,
        "v": 1.2,
        "predicted": 1.25,
        "plain_ms": 60.0,
        "drafted_ms": 50.0,
        "speedup": 1.2,
    } | changes


wrong_value("blank", None, says="^✗ my_numbers: not implemented yet")
wrong_value(
    "untouched", dict.fromkeys(_answer()), says='^✗ my_numbers: not implemented yet: fill in "drafter"'
)
wrong_value("half filled", _answer(c=None, v=None), says='not implemented yet: fill in "c", "v"')
wrong_value("a list", [0.5, 0.1, 1.2], says="expected a dict with the entries")
wrong_value("an entry is missing", {"drafter": "n-gram"}, says=r"(?s)no others.*missing   \['gamma'")
wrong_value("an entry is misspelt", _answer(Alpha=0.5), says=r"unknown   \['Alpha'\]")
wrong_value("no drafter", _answer(drafter=" "), says='"drafter": expected its name')
wrong_value("a number for the drafter", _answer(drafter=2), says='"drafter": expected its name')
wrong_value("half a token", _answer(gamma=2.5), says='"gamma": expected a whole number')
wrong_value("no draft", _answer(gamma=0), says='"gamma": drafts of 0 tokens')
wrong_value("an endless draft", _answer(gamma=100), says='"gamma": drafts of 100 tokens')
wrong_value("a number as text", _answer(c="0.1"), says='"c": expected a number')
wrong_value("infinite", _answer(v=float("inf")), says='"v": expected a number')
wrong_value("percent", _answer(alpha=50), says='"alpha": 50 looks like percent')
wrong_value("negative alpha", _answer(alpha=-0.5), says='"alpha": got -0.5')
wrong_value("negative c", _answer(c=-0.1), says="no draft takes less than no time")
wrong_value("v in seconds", _answer(v=0.055), says="is their ratio, not seconds")
wrong_value("no time", _answer(drafted_ms=0), says='"drafted_ms": got 0, expected more than 0')
wrong_value("another prediction", _answer(predicted=1.4), says="does not follow from your alpha")
wrong_value("prediction upside down", _answer(predicted=0.8), says='"predicted" is upside down')
wrong_value(
    "tokens for the prediction", _answer(predicted=1.75), says="those are the tokens of a round"
)
wrong_value("prediction without v", _answer(predicted=1.458), says='"predicted" leaves your v out')
wrong_value("prediction with one draft", _answer(predicted=1.346), says="counts one drafted token")
wrong_value("alpha of another run", _answer(alpha=0.7), says="does not follow from your alpha, gamma")
wrong_value("another measurement", _answer(speedup=1.3), says='is not "plain_ms" over "drafted_ms"')
wrong_value("measured upside down", _answer(speedup=0.833), says='"speedup" is upside down')
wrong_value("one in seconds", _answer(drafted_ms=0.05), says="is in seconds. Both are in milliseconds")
wrong_value("the other in seconds", _answer(plain_ms=0.06), says="is in seconds. Both are in")
wrong_value(
    "both in seconds",
    _answer(plain_ms=0.06, drafted_ms=0.05),
    says="look like seconds: 0.06 ms would be",
)

right_value("as asked", _answer())
right_value("rounded", _answer(predicted=1.23, speedup=1.22))
right_value("a loss", _answer(plain_ms=50, drafted_ms=60, speedup=0.83))
right_value(
    "n-gram, free drafts",
    _answer(drafter="n-gram", gamma=4, alpha=0.2, c=0, v=1.6, predicted=0.781, speedup=1.2),
)
right_value("numpy", _answer(gamma=np.int64(2), alpha=np.float32(0.5), speedup=np.float64(1.2)))
right_value("everything is kept", _answer(alpha=1, predicted=3 / 1.4))
right_value("a pass that seems quicker than a plain step", _answer(v=0.97, predicted=1.496))
