"""The course's pictures. Each says below it where its numbers come from."""

from specdec_lab.plots.audits import audit_decoder, audit_step, gallery
from specdec_lab.plots.costs import roofline, time_per_token, verification_cost
from specdec_lab.plots.explorer import speedup_explorer
from specdec_lab.plots.laws import laws, overlap
from specdec_lab.plots.lesson import promises, round_split
from specdec_lab.plots.timeline import timeline

__all__ = [
    "audit_decoder",
    "audit_step",
    "gallery",
    "laws",
    "overlap",
    "promises",
    "roofline",
    "round_split",
    "speedup_explorer",
    "time_per_token",
    "timeline",
    "verification_cost",
]
