"""All figures: plain arrays in, a matplotlib `Figure` out; no pyplot, no global state."""

from tacit.reports.band import Band
from tacit.reports.confidence_curves import confidence_curves, coverage_against_confidence
from tacit.reports.constraint_maps import MapPanel, constraint_maps
from tacit.reports.coverage_panels import coverage_panels
from tacit.reports.number_curve import reward_against_number
from tacit.reports.number_panels import number_panels

__all__ = [
    "Band",
    "MapPanel",
    "confidence_curves",
    "constraint_maps",
    "coverage_against_confidence",
    "coverage_panels",
    "number_panels",
    "reward_against_number",
]
