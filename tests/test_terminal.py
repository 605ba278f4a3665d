"""What is shown: signs that survive without colour, and labels that survive everywhere."""

import io
from itertools import pairwise

import pytest
from helpers import byte_decode, near_twin, tiny_lm
from rich.console import Console

from specdec_lab.decoding import generate
from specdec_lab.demo import Demo
from specdec_lab.drafters import ModelDrafter, ScriptedDrafter
from specdec_lab.environment import Check, check_environment, environment_table
from specdec_lab.language_model import TableLM
from specdec_lab.terminal import RoundPrinter, demo_table, marked


def shown(thing, **options):
    console = Console(file=io.StringIO(), width=100, color_system=None, **options)
    console.print(thing)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("piece", "expected"),
    [(" Paris", " ~Paris!"), ("\n\n", "~\n\n!"), ("", ""), ("a\n", "~a!\n"), (" [bold]", " ~[bold]!")],
)
def test_signs_hug_the_visible_part(piece, expected):
    assert marked(piece, "~", "!", "").plain == expected


def chain(text: bytes) -> TableLM:
    def certain(token):
        return [float(token == other) for other in range(256)]

    table = {(): certain(0)} | {(a,): certain(b) for a, b in pairwise(text)}
    return TableLM(table)


def test_a_streamed_run_says_where_each_token_came_from():
    script = list(b"bcd") + list(b"e") + list(b"fxh") + [0]
    drafter = ScriptedDrafter(256, script)
    made = generate(chain(b"abcdefghi"), [ord("a")], drafter=drafter, gamma=3, max_new_tokens=8)
    console = Console(file=io.StringIO(), color_system=None)
    printer = RoundPrinter(console, byte_decode)
    for one in made.rounds:
        printer.show(one)
    # The last round ends the line: a progress bar that follows must not write over the text.
    assert console.file.getvalue().endswith("\n")
    printer.finish()
    assert console.file.getvalue() == "«bcd»+e«f»~g«h»+i\n"


def test_characters_that_span_rounds_are_whole():
    text = "aé".encode()
    made = generate(chain(text), [text[0]], max_new_tokens=2)
    console = Console(file=io.StringIO(), color_system=None)
    printer = RoundPrinter(console, byte_decode)
    for one in made.rounds:
        printer.show(one)
    printer.finish()
    assert console.file.getvalue() == "é\n"


def test_the_table_of_a_demo_has_what_it_claims():
    target = tiny_lm()
    fast = generate(target, [1, 2, 3], drafter=ModelDrafter(near_twin("llama")), max_new_tokens=12)
    plain = generate(target, [1, 2, 3], max_new_tokens=12)
    text = shown(demo_table(Demo(fast, plain, gamma=4, speedup=1.5, matches_target=True)))
    assert f"{fast.metrics.target_forwards} for 12" in text
    assert "includes the bonus" in text
    assert "1.50 x" in text
    assert "yes, token for token" in text
    assert "measured: target LlamaForCausalLM, drafter model with LlamaForCausalLM" in text
    text = shown(demo_table(Demo(fast, plain, gamma=4, speedup=None, matches_target=False)))
    assert "NO" in text


def test_this_computer_is_looked_at():
    checks = check_environment()
    looked_at = [check.what for check in checks]
    assert looked_at == ["Python", "packages", "weights", "free memory", "device"]
    assert checks[0].fine
    assert "ok" in shown(environment_table(checks))


def test_what_is_missing_comes_with_advice():
    text = shown(environment_table([Check("weights", "not fetched yet", False, "run: this")]))
    assert "NO" in text
    assert "run: this" in text
