"""The worked round."""

from specdec_lab.course.mutants import right_value, wrong_value


def _answer(accepted=2, emitted=("on", "the", "warm"), cache_length=5):
    return {"accepted": accepted, "emitted": list(emitted), "cache_length": cache_length}


wrong_value("blank", _answer() | {"emitted": None}, says="fill in all three")
wrong_value("one entry is missing", {"accepted": 2, "cache_length": 5}, says="the three entries")
wrong_value("three values without names", [2, ["on", "the", "warm"], 5], says="the three entries")
wrong_value("counts every word that agrees", _answer(accepted=3), says="That it agrees means nothing")
wrong_value("keeps the whole draft", _answer(accepted=4), says="from the left")
wrong_value("keeps one word", _answer(accepted=1), says="from the left")
wrong_value(
    "accepted words in place of their number",
    _answer(accepted=["on", "the"]),
    says='whole number for "accepted"',
)
wrong_value("no replacement", _answer(emitted=["on", "the"]), says="That word is free")
wrong_value("keeps the mismatch", _answer(emitted=["on", "the", "red"]), says="rejected word itself")
wrong_value(
    "keeps the mismatch and replaces it",
    _answer(emitted=["on", "the", "red", "warm"]),
    says="rejected word itself",
)
wrong_value(
    "takes the last row's word",
    _answer(emitted=["on", "the", "and"]),
    says="the last row's choice",
)
wrong_value(
    "keeps what agrees behind the mismatch",
    _answer(emitted=["on", "the", "warm", "mat"]),
    says="nothing comes behind the target's own word",
)
wrong_value(
    "the target's word only",
    _answer(emitted=["warm"]),
    says="the accepted words, then one from the target",
)
wrong_value("one string", _answer() | {"emitted": "on the warm"}, says="expected a list of words")
wrong_value("counts the new pending word", _answer(cache_length=6), says="No pass has read it yet")
wrong_value("no rewind", _answer(cache_length=7), says="What was rejected has to go")
wrong_value("one word too far", _answer(cache_length=4), says="text before the round, and what was")
wrong_value("only the text", _answer(cache_length=3), says="text before the round, and what was")
wrong_value("a number as text", _answer(cache_length="5"), says='number for "cache_length"')

right_value("as asked", _answer())
right_value("a tuple of words", _answer() | {"emitted": ("on", "the", "warm")})
right_value("another order", {"cache_length": 5, "emitted": ["on", "the", "warm"], "accepted": 2})
