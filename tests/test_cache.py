"""The key-value cache: rewound to the right place each time, and equal to no cache at all."""

import pytest
import torch
import transformers
from helpers import near_twin, tiny_lm, tiny_model, tokens_of

from specdec_lab.cache_check import CacheMismatch, CheckedLM
from specdec_lab.decoding import autoregressive, generate, speculative
from specdec_lab.drafters import LayerSkipDrafter, ModelDrafter, NGramDrafter, ScriptedDrafter
from specdec_lab.language_model import CannotRewind, HFCausalLM, TableLM
from specdec_lab.randomness import SeededChooser
from specdec_lab.sampling import Sampling

ARCHITECTURES = ["llama", "gpt2", "qwen3", "mistral"]
PROMPT = [5, 6, 7, 5, 6]


def plain(target, budget=20):
    return tokens_of(autoregressive(target, PROMPT, max_new_tokens=budget))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("pattern", ["all", "none", "some"])
def test_the_cache_holds_all_tokens_but_the_last_after_every_round(architecture, pattern):
    target = tiny_lm(architecture)
    truth = plain(target)
    wrong = [(token + 1) % target.vocab_size for token in truth]
    script = {"all": truth, "none": wrong, "some": [truth[i] if i % 3 else wrong[i] for i in range(20)]}
    checked = CheckedLM(target)
    drafter = ScriptedDrafter(target.vocab_size, script[pattern])
    tokens = list(PROMPT)
    for one in speculative(checked, drafter, PROMPT, max_new_tokens=20, gamma=3):
        tokens += one.tokens
        assert target.tokens == tokens[:-1]
        assert target._cache.get_seq_length() == len(tokens) - 1
    assert tokens[len(PROMPT) :] == truth
    assert checked.largest_difference < 1e-4
    assert checked.rows_checked >= 20
    assert checked.near_ties == []


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_draft_lengths_three_zero_three(architecture):
    target = tiny_lm(architecture)
    checked_draft = CheckedLM(near_twin(architecture))
    rounds = list(
        speculative(
            CheckedLM(target),
            ModelDrafter(checked_draft),
            PROMPT,
            max_new_tokens=24,
            gamma=lambda so_far: (3, 0, 3)[len(so_far) % 3],
        )
    )
    assert tokens_of(rounds) == plain(target, 24)
    assert len({one.accepted for one in rounds if one.drafted}) > 1
    assert checked_draft.rows_checked > 0


def test_a_draft_accepted_whole_leaves_the_drafter_one_token_behind():
    target = tiny_lm()
    twin = CheckedLM(tiny_lm())
    seen = []

    def gamma(rounds):
        seen.append(twin.length)
        return 3

    rounds = list(speculative(target, ModelDrafter(twin), PROMPT, max_new_tokens=12, gamma=gamma))
    assert [one.accepted for one in rounds] == [3, 3, 3]
    # Before a round the draft has read all tokens but the last two: its own last token, which nobody
    # fed back to it, and the bonus.
    assert seen == [0, len(PROMPT) + 4 - 2, len(PROMPT) + 8 - 2]


def test_a_wrong_cache_is_caught():
    target = tiny_lm()
    target.extend(PROMPT)
    target._cache.crop(-2)
    target.tokens = target.tokens[:3]
    target.tokens[1] = 30  # the cache was made with another token
    with pytest.raises(CacheMismatch, match="cached logits behind token 3 differ"):
        CheckedLM(target).extend([1])


def test_audit_mode_stands_in_for_the_model_it_checks():
    target = tiny_lm()
    end = plain(target)[3]
    target.end_ids = frozenset([end])
    made, real = (generate(model, PROMPT, max_new_tokens=20) for model in (CheckedLM(target), target))
    assert made.tokens == real.tokens
    assert made.stop_reason == "end token"
    described = ("target", "device", "dtype")
    assert [made.provenance[key] for key in described] == [real.provenance[key] for key in described]


def test_a_window_that_slid_past_the_prompt_is_still_rewound():
    target = tiny_lm("mistral")  # a window of 8
    checked = CheckedLM(target)
    checked.extend(list(range(20)))
    checked.extend([1, 2, 3, 4])
    checked.rewind(22)
    checked.extend([9])
    checked.rewind(5)  # further back than the window
    checked.rewind(4)  # and again, with nothing read in between
    checked.extend([9, 10])
    assert checked.largest_difference < 1e-4


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (
            lambda: transformers.MambaForCausalLM(
                transformers.MambaConfig(
                    vocab_size=20, hidden_size=8, num_hidden_layers=1, state_size=4
                )
            ),
            "MambaForCausalLM",
        ),
        (
            lambda: transformers.T5ForConditionalGeneration(
                transformers.T5Config(
                    vocab_size=20, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2
                )
            ),
            "T5ForConditionalGeneration",
        ),
    ],
)
def test_models_that_cannot_be_rewound_are_refused_by_name(model, name):
    with pytest.raises(CannotRewind, match=f"model: got {name}, expected a causal LM"):
        HFCausalLM(model())


def test_a_closed_generator_leaves_models_reusable():
    target, small = tiny_lm(), tiny_lm(seed=1)
    drafter = ModelDrafter(small)
    expected = plain(target)
    rounds = speculative(target, drafter, [9, 8, 7], max_new_tokens=20, gamma=4)
    next(rounds)
    rounds.close()
    assert tokens_of(speculative(target, drafter, PROMPT, max_new_tokens=20, gamma=4)) == expected


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0)])
def test_models_used_for_something_else_between_two_rounds_read_again(sampling):
    target, drafter = tiny_lm(), ModelDrafter(near_twin("llama"))
    options = {"max_new_tokens": 16, "gamma": 3, "sampling": sampling}
    other = {"drafter": drafter, "max_new_tokens": 2, "sampling": sampling}

    def run(between):
        tokens = []
        for one in speculative(target, drafter, PROMPT, chooser=SeededChooser(2), **options):
            tokens += one.tokens
            between()
        return tokens

    undisturbed = run(lambda: None)
    assert run(lambda: generate(target, [9, 8, 7, 6, 5, 4, 3, 2, 1], **other)) == undisturbed


def test_an_interrupted_forward_leaves_models_reusable():
    target = tiny_lm()
    expected = plain(target)
    last_layer = target.model.model.layers[-1]

    def interrupt(*_):
        raise KeyboardInterrupt

    hook = last_layer.register_forward_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        plain(target)
    hook.remove()
    assert plain(target) == expected


@pytest.mark.parametrize("make", [NGramDrafter, None, "layer-skip"])
def test_two_generations_in_a_row_are_independent(make):
    target = tiny_lm()
    if make == "layer-skip":
        drafter = LayerSkipDrafter(target, 2)
    else:
        drafter = make(target.vocab_size) if make else ModelDrafter(tiny_lm(seed=1))
    options = {"drafter": drafter, "max_new_tokens": 16, "sampling": Sampling(1.0), "seed": 4}
    first = generate(target, PROMPT, **options)
    generate(target, [1, 2, 3, 4, 5, 6, 7, 8], **options)
    again = generate(target, PROMPT, **options)
    assert first.tokens == again.tokens
    assert [one.drafted for one in first.rounds] == [one.drafted for one in again.rounds]


def test_layer_skip_never_touches_the_targets_cache():
    target = tiny_lm()
    drafter = LayerSkipDrafter(target, 1)
    target.extend(PROMPT)
    keys = [layer.keys.clone() for layer in target._cache.layers]
    drafter.propose([*PROMPT, 3], 4, None)
    assert target.tokens == PROMPT
    assert all(map(torch.equal, keys, (layer.keys for layer in target._cache.layers)))


def test_layer_skip_drafts_what_its_layers_would_without_any_cache():
    target = tiny_lm("qwen3")
    drafter = LayerSkipDrafter(target, 2)
    target.extend(PROMPT)
    made = drafter.propose([*PROMPT, 3], 3, None).tokens
    shallow, expected = target.early_exit(2), [*PROMPT, 3]
    for _ in range(3):
        expected.append(int(shallow.uncached_logits(expected, 1)[0].argmax()))
    assert made == expected[-3:]


def test_layer_skip_reads_only_what_the_target_has_not_read(monkeypatch):
    target = tiny_lm()
    drafter = LayerSkipDrafter(target, 2)
    assert drafter.propose(PROMPT, 3, None).tokens == []  # nothing has been read yet
    target.extend(PROMPT)
    read = []
    extend = drafter.model.extend
    monkeypatch.setattr(drafter.model, "extend", lambda t, rows: read.append(len(t)) or extend(t, rows))
    drafter.propose([*PROMPT, 3], 3, None)
    assert read == [1, 1, 1]


@pytest.mark.parametrize("layers", [0, 3, 7])
def test_layer_skip_of_no_or_all_layers_is_refused(layers):
    with pytest.raises(ValueError, match=f"layers: got {layers}, expected 1 to 2 of the 3"):
        LayerSkipDrafter(tiny_lm(), layers)


@pytest.mark.parametrize("length", [-1, 6])
def test_rewinding_to_where_nothing_is_is_refused(length):
    target = tiny_lm()
    target.extend(PROMPT)
    with pytest.raises(ValueError, match=f"length: got {length}, expected 0 to 5"):
        target.rewind(length)


def test_reading_nothing_or_too_much_is_refused():
    target = tiny_lm(max_position_embeddings=4)
    with pytest.raises(ValueError, match="tokens: got none"):
        target.extend([])
    with pytest.raises(ValueError, match="expected at most 4 in all, the model's context"):
        target.extend([1, 2, 3, 4, 5])
    assert target.length == 0


def test_rewind_to_match_keeps_what_the_prefix_confirms():
    model = TableLM.random(9)
    model.extend([1, 2, 3, 4, 5])
    assert model.rewind_to_match([1, 2, 7, 8]) == [7, 8]
    assert model.tokens == [1, 2]
    assert model.rewind_to_match([1, 2]) == [2]  # at least one token is left to read


def test_rows_of_another_width_are_cut_or_filled():
    model = tiny_model("llama")
    rows = HFCausalLM(model).extend(PROMPT)
    assert torch.equal(HFCausalLM(model, vocab_size=30).extend(PROMPT), rows[:, :30])
    wide = HFCausalLM(model, vocab_size=40).extend(PROMPT)
    assert torch.equal(wide[:, :37], rows)
    assert (wide[:, 37:] == -float("inf")).all()


def test_a_table_needs_a_row_for_every_context():
    with pytest.raises(ValueError, match=r"table: got no row for \(\)"):
        TableLM({(1,): [0.5, 0.5]})
    with pytest.raises(ValueError, match=r"table: got rows of lengths \[1, 2\]"):
        TableLM({(): [0.5, 0.5], (1,): [1.0]})
