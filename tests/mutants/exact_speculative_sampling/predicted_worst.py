"""A guess at the worst of three mistakes."""

import numpy as np

from specdec_lab.course.mutants import right_value, wrong_value

wrong_value("blank", None, says=r"\A.*not implemented yet")
wrong_value("nothing between the quotes", "", says='expected one of "a", "b" and "c"')
wrong_value("another letter", "d", says='expected one of "a", "b" and "c"')
wrong_value("two letters", "ab", says='expected one of "a", "b" and "c"')
wrong_value("a number", 2, says='expected one of "a", "b" and "c"')
wrong_value("a list", ["b"], says='expected one of "a", "b" and "c"')
wrong_value("a sentence", "b is the worst", says='expected one of "a", "b" and "c"')
wrong_value("the name of one", "argmax bonus", says='expected one of "a", "b" and "c"')

right_value("a", "a")
right_value("b", "b")
right_value("c", "c")
right_value("a capital", "B")
right_value("numpy's text", np.str_("c"))
