"""The course's pictures. Each says below it where its numbers come from."""

from specdec_lab.plots.audits import alpha_along, audit_decoder, audit_step, gallery
from specdec_lab.plots.costs import roofline, time_per_token, verification_cost
from specdec_lab.plots.laws import laws, overlap
from specdec_lab.plots.lesson import promises, round_split
from specdec_lab.plots.runs import rounds

__all__ = [
    "alpha_along",
    "audit_decoder",
    "audit_step",
    "gallery",
    "laws",
    "overlap",
    "promises",
    "roofline",
    "round_split",
    "rounds",
    "time_per_token",
    "verification_cost",
]
