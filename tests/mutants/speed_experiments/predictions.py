"""A guess at the best draft length and its speedup."""

import numpy as np

from specdec_lab.course.mutants import right_value, wrong_value


def _answer(gamma=2, speedup=1.3):
    return {"gamma": gamma, "speedup": speedup}


wrong_value("blank", None, says="^✗ predictions: not implemented yet")
wrong_value("an ellipsis", ..., says="^✗ predictions: not implemented yet")
wrong_value("untouched", _answer(None, None), says="^✗ .*not implemented yet: fill in .gamma., .speed")
wrong_value("no speedup", _answer(speedup=None), says='^✗ .*not implemented yet: fill in "speedup"')
wrong_value("one entry", {"gamma": 2}, says=r"(?s)expected the entries.*missing   \['speedup'\]")
wrong_value("another entry", _answer() | {"c": 0.1}, says=r"(?s)no others.*unknown   \['c'\]")
wrong_value("a tuple", (2, 1.3), says="expected a dict with the entries")
wrong_value("half a token", _answer(gamma=2.5), says='"gamma": expected a whole number')
wrong_value("a whole float", _answer(gamma=2.0), says='"gamma": expected a whole number')
wrong_value("a length in words", _answer(gamma="two"), says='"gamma": expected a whole number')
wrong_value("yes", _answer(gamma=True), says='"gamma": expected a whole number')
wrong_value("no draft", _answer(gamma=0), says="not in the sweep. Choose 1, 2, 4 or 8")
wrong_value("between two lengths", _answer(gamma=3), says="drafts of 3 tokens are not in the sweep")
wrong_value("an endless draft", _answer(gamma=64), says="not in the sweep. Choose 1, 2, 4 or 8")
wrong_value("a speedup in words", _answer(speedup="1.3x"), says='"speedup": expected a number')
wrong_value("no number", _answer(speedup=float("nan")), says='"speedup": expected a number')
wrong_value("percent", _answer(speedup=130), says="Write a number between 0.1 and 10")
wrong_value("nothing", _answer(speedup=0), says="Write a number between 0.1 and 10")
wrong_value("negative", _answer(speedup=-0.3), says="Write a number between 0.1 and 10")

right_value("as asked", _answer())
right_value("a loss", _answer(gamma=1, speedup=0.8))
right_value("an int, the longest draft", _answer(gamma=8, speedup=3))
right_value("numpy, another order", {"speedup": np.float32(1.5), "gamma": np.int64(4)})
