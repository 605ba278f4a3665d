"""A guess at v(8)."""

import torch

from specdec_lab.course.mutants import right_value, wrong_value

wrong_value("blank", None, says="not implemented yet")
wrong_value("an ellipsis", ..., says="not implemented yet")
wrong_value("words", "about twice", says="type str, expected a number")
wrong_value("a number as text", "1.5", says="type str, expected a number")
wrong_value("yes", True, says="type bool, expected a number")
wrong_value("a list", [1.5], says="a list of 1, expected a number")
wrong_value("nothing at all takes no time", 0, says="Write a number between")
wrong_value("negative", -1.5, says="Write a number between")
wrong_value("seconds in ms, or a wild guess", 3000, says="Write a number between")
wrong_value("infinite", float("inf"), says="expected a finite number")

right_value("an int", 8)
right_value("a float", 1.07)
right_value("faster than one token, by some odd effect", 0.95)
right_value("a tensor", torch.tensor(2.0))
