"""The command line as its users meet it: one line per mistake, one object with --json."""

import json
import subprocess
import sys

import pytest

from specdec_lab.cli import main

JSON_KEYS = {
    "text",
    "tokens",
    "target_forwards",
    "drafted",
    "accepted",
    "acceptance_rate",
    "block_efficiency",
    "tokens_per_second",
    "baseline_tokens_per_second",
    "speedup",
    "matches_target",
    "provenance",
}


def run(capsys, *arguments):
    """The exit code, what went to stdout and what went to stderr."""
    try:
        code = main(list(arguments))
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["demo", "--gamma", "x"], "argument --gamma: got 'x', expected a whole number"),
        (["demo", "--gamma", "-1"], "argument --gamma"),
        (["demo", "--max-new-tokens", "-5"], "argument --max-new-tokens: got '-5'"),
        (["demo", "--drafter", "magic"], "argument --drafter: invalid choice: 'magic'"),
        (["demo", "--dtype", "int8"], "argument --dtype"),
        (["demo", "--nonsense"], "unrecognized arguments: --nonsense"),
        (["demo", "--temperature", "-1"], "temperature: got -1.0, expected 0 or more"),
        (["demo", "--temperature", "1", "--top-p", "1.5"], "top_p: got 1.5"),
        (["demo", "--temperature", "1", "--top-k", "0"], "top_k: got 0"),
        (["demo", "--top-p", "0.9"], "--top-p: expected a --temperature above 0"),
        (["demo", "--noise", "0.1"], "--noise: expected --drafter corrupted"),
        (["demo", "--layers", "3"], "--layers: expected --drafter layerskip"),
        (["demo", "--prompt", ""], "--prompt: got an empty text"),
        (["demo", "--seed", str(2**64)], "argument --seed: got"),
        (["demo", "--device", "cuda:99"], "device: got 'cuda:99'"),
        (["demo", "--drafter", "scripted", "--temperature", "1"], "--temperature: expected none"),
        (["demo", "--drafter", "model", "--target", "x"], "--drafter model: expected a draft model"),
        (["demo", "--drafter", "scripted", "--prompt", "x"], "--prompt: expected none with --drafter"),
        (["demo", "--drafter", "scripted", "--gamma", "0"], "gamma: got 0, expected 1 or more"),
        (["demo", "--target", "/no/such/folder"], "target: got '/no/such/folder'"),
        (["models", "path", "nonsense"], "name: got 'nonsense', expected one of"),
        (["models"], "the following arguments are required: ACTION"),
        ([], "the following arguments are required: COMMAND"),
        (["dance"], "invalid choice: 'dance'"),
    ],
)
def test_a_wrong_argument_gets_one_line_and_exit_code_2(capsys, arguments, complaint):
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert complaint in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"], ["models", "--help"]])
def test_help_is_there(capsys, arguments):
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert len(out.splitlines()) > 8


def test_help_shows_examples_and_explains_the_signs(capsys):
    _, out, _ = run(capsys, "demo", "--help")
    assert "specdec-lab demo --drafter scripted" in out
    assert "«these» tokens were drafted and accepted" in out


def test_version(capsys):
    from specdec_lab import __version__

    assert run(capsys, "--version")[:2] == (0, f"specdec-lab {__version__}\n")


def test_the_scripted_demo_is_labelled_everywhere(capsys):
    code, out, _ = run(capsys, "demo", "--drafter", "scripted")
    assert code == 0
    assert "SIMULATED  The capital «of France is Paris»+. «It is beautiful»~." in out
    assert "SIMULATED: a scripted run of no model" in out
    assert "2.81 x" in out
    assert "2.44 x" in out


def test_the_scripted_demo_as_json(capsys):
    code, out, _ = run(capsys, "demo", "--drafter", "scripted", "--json")
    answer = json.loads(out)
    assert code == 0
    assert set(answer) >= JSON_KEYS
    assert answer["provenance"]["kind"] == "simulated"
    assert answer["tokens_per_second"] is None
    assert answer["baseline_tokens_per_second"] is None
    assert (answer["target_forwards"], answer["drafted"], answer["accepted"]) == (2, 8, 7)


def test_weights_that_are_not_there_are_said_to_be_so(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("SPECDEC_LAB_HOME", str(tmp_path))
    code, out, _ = run(capsys, "models", "list")
    assert code == 0
    assert "not fetched yet" in " ".join(out.split())
    for action in ("path", "verify"):
        code, out, err = run(capsys, "models", action)
        assert (code, out) == (1, "")
        assert "not fetched yet; run: specdec-lab models fetch" in err


def test_an_interruption_is_no_traceback(capsys, monkeypatch):
    from specdec_lab import simulation

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(simulation, "simulate", interrupted)
    code, _, err = run(capsys, "demo", "--drafter", "scripted")
    assert (code, err) == (130, "specdec-lab: interrupted\n")


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import specdec_lab", ("torch", "transformers", "numpy", "rich")),
        ("import specdec_lab.cli", ("torch", "transformers", "numpy", "rich")),
        ("from specdec_lab import NGramDrafter, speculative", ("transformers", "matplotlib", "rich")),
    ],
)
def test_imports_bring_no_more_than_is_used(statement, unwanted):
    code = f"{statement}; import sys; print(*[m for m in {unwanted!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_every_public_name_is_where_the_package_says():
    import specdec_lab

    assert {name for name in specdec_lab.__all__ if not hasattr(specdec_lab, name)} == set()
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = specdec_lab.nonsense


@pytest.mark.slow
def test_the_demo_of_the_readme(capsys):
    code, out, _ = run(capsys, "demo", "--max-new-tokens", "12")
    assert code == 0
    assert "The capital of France is Paris" in out.translate(dict.fromkeys(map(ord, "«»+~")))
    assert "yes, token for token" in out
    assert "measured: target smollm2-135m-instruct" in " ".join(out.split())


@pytest.mark.slow
def test_the_demo_as_json(capsys):
    code, out, err = run(capsys, "demo", "--json", "--max-new-tokens", "8", "--gamma", "3")
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    assert set(answer) >= JSON_KEYS
    assert answer["matches_target"] is True
    assert answer["text"].startswith(" Paris")
    assert answer["speedup"] == pytest.approx(
        answer["tokens_per_second"] / answer["baseline_tokens_per_second"]
    )
    assert answer["provenance"]["kind"] == "measured"


@pytest.mark.slow
def test_a_sampled_demo_repeats_with_its_seed_and_claims_no_match(capsys):
    arguments = ["demo", "--json", "--temperature", "0.9", "--seed", "5", "--max-new-tokens", "8"]
    answers = [json.loads(run(capsys, *arguments)[1]) for _ in range(2)]
    assert answers[0]["tokens"] == answers[1]["tokens"]
    assert answers[0]["matches_target"] is None
    assert answers[0]["provenance"]["seed"] == 5
