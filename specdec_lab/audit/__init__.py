"""Proof or refutation of exactness: of one step, of whole decoders, of real models, of black boxes."""

from specdec_lab.audit.assisted import AssistedAudit, audit_transformers_assisted
from specdec_lab.audit.decoder import DecoderAudit, audit_decoder
from specdec_lab.audit.gallery import GALLERY, GalleryAudit, audit_gallery
from specdec_lab.audit.law import Decoder, DecoderFault, OutputLaw, output_law, target_law
from specdec_lab.audit.positions import PositionsAudit, audit_positions
from specdec_lab.audit.samples import SampleAudit, audit_samples
from specdec_lab.audit.step import StepAudit, audit_step, worked_example

__all__ = [
    "GALLERY",
    "AssistedAudit",
    "Decoder",
    "DecoderAudit",
    "DecoderFault",
    "GalleryAudit",
    "OutputLaw",
    "PositionsAudit",
    "SampleAudit",
    "StepAudit",
    "audit_decoder",
    "audit_gallery",
    "audit_positions",
    "audit_samples",
    "audit_step",
    "audit_transformers_assisted",
    "output_law",
    "target_law",
    "worked_example",
]
