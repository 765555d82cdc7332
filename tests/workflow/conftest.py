"""Fixtures of whole runs."""

from runs import finished, workflow

__all__ = ["finished", "workflow"]
