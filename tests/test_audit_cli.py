"""``specdec-lab audit`` as its users meet it, and the pictures of audits."""

import json

import pytest
from test_cli import run
from test_measuring import texts

from specdec_lab import plots
from specdec_lab.audit import audit_decoder, worked_example
from specdec_lab.audit.gallery import GALLERY
from specdec_lab.audit.gallery.member import loop, with_draft
from specdec_lab.language_model import RandomLM

DECODERS = """
import torch

def row(model, text):
    model.reset()
    return torch.softmax(model.extend(text)[-1], dim=-1)

def exact(target, draft, prompt, max_new_tokens, chooser):
    tokens = list(prompt)
    while len(tokens) < len(prompt) + max_new_tokens:
        p, q = row(target, tokens), row(draft, tokens)
        x = chooser.sample(q)
        if not chooser.accept(p[x] / q[x]):
            x = chooser.sample((p - q).clamp(min=0) / (p - q).clamp(min=0).sum())
        tokens.append(x)
    return tokens[len(prompt):]

def wrong(target, draft, prompt, max_new_tokens, chooser):
    tokens = list(prompt)
    while len(tokens) < len(prompt) + max_new_tokens:
        tokens.append(chooser.sample(row(draft, tokens)))
    return tokens[len(prompt):]

def crashes(target, draft, prompt):
    return []

def leaves(target, draft, prompt, max_new_tokens, chooser):
    raise SystemExit(0)

number = 3
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with somebody's module in it."""
    (tmp_path / "somebodys.py").write_text(DECODERS)
    (tmp_path / "exits.py").write_text("raise SystemExit(0)\n")
    (tmp_path / "broken_import.py").write_text("import no_such_package_at_all\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nonsense"], "argument WHAT: invalid choice: 'nonsense'"),
        (["--length", "3"], "--length: expected none with specdec-lab audit"),
        (["--temperature", "0.5"], "--temperature: expected none with specdec-lab audit"),
        (["positions", "--vocab", "3"], "--vocab: expected none with positions"),
        (["positions", "--decoder", "a:b"], "--decoder: expected none with positions"),
        (
            ["positions", "--drafter", "model", "--target", "x"],
            "--drafter model: expected a draft model",
        ),
        (["positions", "--layers", "3"], "--layers: expected --drafter layerskip"),
        (["positions", "--prompt", ""], "--prompt: got an empty text"),
        (["positions", "--temperature", "-1"], "temperature: got -1.0"),
        (["transformers", "--prompt", "x"], "--prompt: expected none with transformers"),
        (["--decoder", "somebodys"], "--decoder: got 'somebodys', expected MODULE:NAME"),
        (
            ["--decoder", "nobodys:exact"],
            "importing 'nobodys' failed with ModuleNotFoundError",
        ),
        (
            ["--decoder", "somebodys:missing"],
            "--decoder: got 'missing', expected a function",
        ),
        (["--decoder", "somebodys:number"], "--decoder: got 'number', expected a function"),
        (["--decoder", "somebodys:exact", "--vocab", "1"], "vocab: got 1, expected 2 or more"),
        (["--decoder", "somebodys:exact", "--end-token", "7"], "end_ids: got 7, expected 0 to 2"),
        (["--decoder", "somebodys:exact", "--top-k", "0"], "top_k: got 0"),
        (["--decoder", "somebodys:exact", "--max-paths", "0"], "max_paths: got 0"),
        (["--decoder", "somebodys:exact", "--length", "16"], "length: got 16 with a vocabulary of 3"),
        (["--decoder", "somebodys:exact", "--temperature", "inf"], "temperature: got inf"),
        (["--decoder", "somebodys:exact", "--temperature", "0", "--top-k", "2"], "--top-k: expected a"),
        (["--decoder", ".somebodys:exact"], "--decoder: importing '.somebodys' failed with TypeError"),
        (["--decoder", "exits:f"], "--decoder: importing 'exits' failed with SystemExit: 0"),
        (["--decoder", "broken_import:f"], "No module named 'no_such_package_at_all'"),
    ],
)
def test_a_wrong_argument_gets_one_line_and_exit_code_2(capsys, here, arguments, complaint):
    code, out, err = run(capsys, "audit", *arguments)
    assert (code, out) == (2, "")
    assert complaint in err
    assert err.count("\n") == 1


def test_an_exact_decoder_is_cleared_on_every_pair(capsys, here):
    code, out, _ = run(capsys, "audit", "--decoder", "somebodys:exact", "--length", "2")
    assert code == 0
    assert out.count("exact: every sequence is as likely as under the target") == 5
    assert "1.00 tokens per target forward" in out


def test_a_wrong_decoder_is_condemned_on_the_first_pair(capsys, here):
    code, out, _ = run(capsys, "audit", "--decoder", "somebodys:wrong", "--json")
    answer = json.loads(out)
    assert code == 1
    assert answer["verdict"] == "not exact"
    assert answer["l1_error"] > 0.1
    assert len(answer["cases"]) == 1


def test_a_decoder_that_crashes_is_told_where(capsys, here):
    code, out, _ = run(capsys, "audit", "--decoder", "somebodys:crashes")
    assert code == 1
    assert "crashed: TypeError" in out
    assert "path: before the first random choice" in out


def test_a_decoder_that_leaves_the_program_is_condemned(capsys, here):
    code, out, _ = run(capsys, "audit", "--decoder", "somebodys:leaves")
    assert code == 1
    assert "crashed: SystemExit in somebodys.py:" in out


def test_the_target_has_the_sampling_that_was_asked_for(capsys, here):
    options = ["--decoder", "somebodys:exact", "--length", "2", "--json"]
    assert run(capsys, "audit", *options, "--temperature", "1")[0] == 0
    code, out, _ = run(capsys, "audit", *options, "--temperature", "0.5")
    assert code == 1  # it has no temperature of its own
    assert json.loads(out)["verdict"] == "not exact"


def test_a_budget_is_kept_and_what_is_left_is_said(capsys, here):
    options = ["--decoder", "somebodys:exact", "--max-paths", "10"]
    code, out, _ = run(capsys, "audit", *options)
    assert code == 1
    assert out.count("The law of") == 5  # the others are tried all the same
    assert "undecided: a probability of" in out
    assert "was left for want of budget" in out


@pytest.mark.slow
def test_everything_for_people(capsys):
    code, out, _ = run(capsys, "audit")
    text = " ".join(out.split())
    assert code == 0
    for part in (
        "Paris 0.350 0.550 63.6 % 0 0.350 0 0.350",
        "Paris 7/20 11/20 7/11 0 7/20 0 7/20",
        "alpha 80 %; rejection mass 20 %",
        "The law of speculative(), 4 tokens, gamma 3, and the target's own",
        "2,835 paths",
        "cleared 13 of 13 honest, condemned 35 of 35 rogues",
    ):
        assert part in text


@pytest.mark.slow
def test_everything_for_machines(capsys):
    code, out, err = run(capsys, "audit", "--json")
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert answer["verdict"] == "exact"
    assert answer["l1_error"] < 1e-12
    assert answer["one_step"]["rejection_mass"] == pytest.approx(0.2)
    assert answer["one_step"]["l1_error_rational"] == "0"
    assert answer["decoder"]["mass_covered"] == pytest.approx(1.0)
    assert len(answer["gallery"]) == len(GALLERY)
    for member in answer["gallery"]:
        assert (member["verdict"] == "exact") is member["honest"]


@pytest.mark.slow
def test_positions_of_the_real_model(capsys):
    options = ["--prompt", "The capital of France is", "--max-new-tokens", "6"]
    code, out, _ = run(
        capsys, "audit", "positions", *options, "--layers", "26", "--drafter", "layerskip"
    )
    assert code == 0
    assert "p is restored everywhere" in out
    # Prompt look-up finds nothing in this prompt: nothing is judged, and nothing is proved.
    code, out, _ = run(capsys, "audit", "positions", *options, "--json", "--drafter", "ngram")
    answer = json.loads(out)
    assert (code, answer["judged"]) == (1, 0)
    assert answer["provenance"]["drafter"] == "n-gram"


def test_the_picture_of_a_step_shows_where_the_mass_comes_from():
    shown = texts(plots.audit_step(worked_example()))
    for part in ("drafted and accepted", "restored by the residual", "theory: alpha 0.8"):
        assert part in shown


def test_the_picture_of_a_decoder_shows_both_laws():
    decoder = with_draft(loop(), RandomLM(3, seed=2))
    audit = audit_decoder(decoder, RandomLM(3, seed=1), [0, 1], 3, name="mine")
    figure = plots.audit_decoder(audit, most=5)
    assert len(figure.axes[0].patches) == 10
    assert "22 more sequences not shown" in texts(figure)
    assert "mine" in texts(figure)


def test_a_decoder_without_a_law_is_not_drawn():
    audit = audit_decoder(lambda *_: None, RandomLM(3, seed=1), [0, 1], 2)
    with pytest.raises(ValueError, match="audit: got a decoder with no law"):
        plots.audit_decoder(audit)
