"""What is not well with a lake: named conditions, each with its figure, its likely cause and the command that helps."""

from __future__ import annotations

from windrow.doctor.conditions import Finding
from windrow.doctor.examination import examine_lake

__all__ = ["Finding", "examine_lake"]
