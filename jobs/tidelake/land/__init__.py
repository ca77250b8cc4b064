"""The land stage: the archive's objects of one hour → canonical objects and a manifest in the lake (design section 7)."""

from __future__ import annotations

from tidelake.land.hour import LandReport, land_hour

__all__ = ["LandReport", "land_hour"]
