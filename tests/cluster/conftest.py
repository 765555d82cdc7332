"""Fixtures of whole runs, those of the tests of the workflow on this machine."""

from runs import finished, workflow

__all__ = ["finished", "workflow"]
