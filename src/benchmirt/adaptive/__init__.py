"""Adaptive testing: which question to put to a model next, given its answers so far.

:mod:`~benchmirt.adaptive.selection` chooses questions, :mod:`~benchmirt.adaptive.session` is the test of one model, for
whoever runs it, :mod:`~benchmirt.adaptive.replay` gives tests to models whose answers are on record, and
:mod:`~benchmirt.adaptive.trial` compares them with random order, with a fixed list and with one-dimensional tests.

Modules are imported one by one, so that each rule's fingerprint holds those that it uses.
"""
