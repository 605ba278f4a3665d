"""Shared fixtures. Nothing here reaches a network: hub look-ups are switched off before any import."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def pair():
    """The real 135M target (its weights are fetched by ``make test`` before pytest starts)."""
    from specdec_lab.pretrained import load_pair

    return load_pair("embedded", progress=False)
