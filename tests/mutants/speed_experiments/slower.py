"""The setting that loses."""

import numpy as np

from specdec_lab.course.mutants import right_value, wrong_value

REASON = "two thirds of the layers make c so large that four drafts cost more than two plain steps"


def _answer(setting="b", speedup=0.6, because=REASON):
    return {"setting": setting, "speedup": speedup, "because": because}


wrong_value("blank", None, says="^✗ slower: not implemented yet")
wrong_value("untouched", _answer(None, None, None), says="^✗ slower: not implemented yet: fill in")
wrong_value("no reason", _answer(because=None), says='^✗ .*not implemented yet: fill in "because"')
wrong_value("an ellipsis", _answer(because=...), says='not implemented yet: fill in "because"')
wrong_value("an entry is missing", {"setting": "b", "speedup": 0.6}, says=r"missing   \['because'\]")
wrong_value("text only", "b, because c is large", says="expected a dict with the entries")
wrong_value("a setting that there is not", _answer("f"), says='one of the letters "a" to "e"')
wrong_value("two settings", _answer("ab"), says='one of the letters "a" to "e"')
wrong_value("no letter", _answer(""), says='one of the letters "a" to "e"')
wrong_value("a number", _answer(2), says='one of the letters "a" to "e"')
wrong_value("a list", _answer(["b"]), says='one of the letters "a" to "e"')
wrong_value("a win", _answer(speedup=1.4), says="1.4 would be no loss. .*slower than plain")
wrong_value("no difference", _answer(speedup=1), says="1 would be no loss")
wrong_value("percent", _answer(speedup=60), says="60 would be no loss")
wrong_value("negative", _answer(speedup=-0.4), says="Even a slow run has one above 0")
wrong_value("nothing", _answer(speedup=0), says="Even a slow run has one above 0")
wrong_value("a speedup in words", _answer(speedup="slow"), says='"speedup": expected a number')
wrong_value("a reason that is none", _answer(because=3), says='"because": expected a text')
wrong_value("few words", _answer(because="c is too large"), says="4 words say too little")
wrong_value("an empty reason", _answer(because="  "), says="0 words say too little")
wrong_value(
    "a reason without theory",
    _answer(because="I tried it three times and it never was any good on my laptop"),
    says=r"which of them is to blame: alpha .*c .*or v",
)

right_value("as asked", _answer())
right_value("a capital with blanks", _answer(" E ", 0.95))
right_value("numpy", _answer("a", np.float64(0.5)))
right_value(
    "v as it is written", _answer("c", 0.9, "at 32 tokens per pass v(33) is far above one here")
)
right_value(
    "alpha", _answer("d", 0.7, "On random text alpha is near zero, so nothing comes of drafts.")
)
right_value(
    "in words", _answer("d", 0.7, "nearly every drafted token gets rejected at this temperature")
)
right_value("time", _answer("b", 0.7, "the drafter takes nearly as long as the target for each token"))
right_value("costs", _answer("b", 0.7, "each draft step is nearly as expensive as one of the target"))
