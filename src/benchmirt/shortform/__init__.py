"""Fewer items: which to run, and what is lost with the rest.

:mod:`~benchmirt.shortform.information` says what items tell about the abilities and chooses those that tell most,
:mod:`~benchmirt.shortform.listing` makes the list of items that a user runs. The other modules judge short forms on
models that had no part in choosing them: :mod:`~benchmirt.shortform.published` filters items as the published study
did, :mod:`~benchmirt.shortform.folds` calibrates without some lineages and chooses forms from that,
:mod:`~benchmirt.shortform.picture` compares the correlations that forms and whole benchmarks give,
:mod:`~benchmirt.shortform.weakening` asks what a safety set loses with its sharpest items, and
:mod:`~benchmirt.shortform.trial` puts these together as tables.

Modules are imported one by one, so that each rule's fingerprint holds those that it uses.
"""
