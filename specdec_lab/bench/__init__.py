"""Experiments on speed: a module each, giving a ``Result`` that says where its numbers come from."""
