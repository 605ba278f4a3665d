"""What differs on a GPU: devices, half precision, synchronised clocks. Skipped where there is none."""

import pytest
import torch
from helpers import near_twin, tiny_lm

from benchmarks import gpu
from specdec_lab.batch import generate_batch
from specdec_lab.benchmark import (
    measure_machine,
    median_seconds,
    random_large_target,
    verification_cost,
)
from specdec_lab.decoding import generate
from specdec_lab.drafters import LayerSkipDrafter, ModelDrafter, NGramDrafter
from specdec_lab.language_model import HFCausalLM
from specdec_lab.pretrained import Pair, load_pair
from specdec_lab.sampling import Sampling
from specdec_lab.weights import find_weights, problems

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def on_gpu(model: HFCausalLM, dtype=torch.float32) -> HFCausalLM:
    return HFCausalLM(model.model.to("cuda", dtype))


@pytest.mark.parametrize("kind", ["model", "n-gram", "layer-skip"])
def test_greedy_output_on_a_gpu_is_the_targets_own(kind):
    target = on_gpu(tiny_lm())
    drafter = {
        "model": lambda: ModelDrafter(on_gpu(near_twin("llama"))),
        "n-gram": lambda: NGramDrafter(target.vocab_size, shortest=1),
        "layer-skip": lambda: LayerSkipDrafter(target, 2),
    }[kind]()
    truth = generate(target, [1, 2, 3], max_new_tokens=20)
    made = generate(target, [1, 2, 3], drafter=drafter, gamma=3, max_new_tokens=20)
    assert made.tokens == truth.tokens
    assert made.provenance["device"].startswith("cuda")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["model", "n-gram"])
def test_sampling_on_a_gpu(dtype, kind):
    target = on_gpu(tiny_lm(), dtype)
    small = on_gpu(near_twin("llama"), dtype)
    drafter = ModelDrafter(small) if kind == "model" else NGramDrafter(37, shortest=1)
    sampling = Sampling(1.0, top_p=0.9, repetition_penalty=1.1)
    options = {"drafter": drafter, "max_new_tokens": 30, "sampling": sampling, "seed": 5}
    first, again = (generate(target, [1, 2, 1, 2], trace=True, **options) for _ in range(2))
    assert first.tokens == again.tokens
    assert len(first.tokens) == 30


def test_a_draft_model_may_sit_on_another_device():
    target = on_gpu(tiny_lm())
    drafter = ModelDrafter(near_twin("llama"))
    options = {"max_new_tokens": 20, "sampling": Sampling(1.0), "seed": 1}
    assert len(generate(target, [1, 2, 3], drafter=drafter, **options).tokens) == 20


def test_the_course_measures_a_gpu_by_its_memory():
    """What notebook 01 does there: a 1.5B architecture, timed with the device synchronised."""
    device = torch.device("cuda")
    machine = measure_machine(device, torch.bfloat16, repeats=3)
    assert machine.ridge > 0
    target = random_large_target(device)
    target.extend(list(range(200)), rows=1)
    cost = verification_cost(
        target,
        list(range(8)),
        [1, 8],
        lambda run: median_seconds(run, repeats=5, synchronize=target.synchronize),
    )
    assert min(cost.values()) > 0
    assert target.length == 200


def test_a_batch_on_a_gpu_decodes_what_each_row_decodes_alone():
    target = on_gpu(tiny_lm())
    prompts = [[1, 2, 3], [4, 5], [6, 7, 8, 9]]
    drafter = ModelDrafter(on_gpu(near_twin("llama")))
    options = {"max_new_tokens": 20, "end_ids": []}
    together = generate_batch(target, prompts, drafter=drafter, gamma=3, **options)
    assert [one.tokens for one in together] == [
        generate(target, prompt, **options).tokens for prompt in prompts
    ]


def test_the_costs_of_a_small_random_pair_on_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "SIZES", (1, 2))
    monkeypatch.setattr(gpu, "CONTEXTS", (64, 256))
    device, small = torch.device("cuda"), {"num_hidden_layers": 2, "vocab_size": 5000}
    models = (random_large_target(device, size, **small) for size in ("1.5B", "0.5B"))
    pair = Pair(*models, None)
    results = gpu.measure(pair, tmp_path, quick=True, progress=False)
    assert 0.0 <= results["decode"].rows[0]["share_of_launching"] <= 1.0
    assert gpu.costs_sheet(results["costs"]).rows


@pytest.mark.skipif(bool(problems(find_weights("embedded"))), reason="needs the embedded weights")
def test_the_embedded_pair_is_exact_on_a_gpu():
    pair = load_pair("embedded", dtype="float32", device="cuda", progress=False)
    prompt = "Why is the sky blue?"
    options = {"chat": True, "max_new_tokens": 32}
    truth = pair.generate(prompt, drafter=None, **options)
    assert pair.generate(prompt, gamma=3, **options).tokens == truth.tokens
