"""Proof that intervals and verdicts mean what they say: small studies with a known truth, walked through in one process.

No rule of the workflow uses this; `tests/benchmarks/calibration.py` does.
"""
