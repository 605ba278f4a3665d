"""Proof or refutation of exactness: of one step, of whole decoders, of real models, of black boxes."""

from specdec_lab.audit.decoder import DecoderAudit, audit_decoder
from specdec_lab.audit.law import Decoder, DecoderFault, OutputLaw, output_law, target_law
from specdec_lab.audit.step import StepAudit, audit_step

__all__ = [
    "Decoder",
    "DecoderAudit",
    "DecoderFault",
    "OutputLaw",
    "StepAudit",
    "audit_decoder",
    "audit_step",
    "output_law",
    "target_law",
]
