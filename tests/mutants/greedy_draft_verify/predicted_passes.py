"""A guess at the number of passes."""

import numpy as np

from specdec_lab.course.mutants import right_value, wrong_value

wrong_value("blank", None, says="not implemented yet")
wrong_value("words", "few", says="type str, expected a number")
wrong_value("a number as text", "12", says="type str, expected a number")
wrong_value("yes", True, says="type bool, expected a number")
wrong_value("none at all", 0, says="Write a number between 1 and 64")
wrong_value("more than tokens", 65, says="Write a number between 1 and 64")
wrong_value("no number", float("nan"), says="expected a finite number")
wrong_value("both requests", {"repeat": 12, "write": 60}, says="type dict, expected a number")

right_value("an int", 12)
right_value("a float", 6.4)
right_value("as many as tokens", 64)
right_value("numpy", np.int64(7))
