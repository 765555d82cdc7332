"""Profiles of benchmarks: what each one measures, and which of its items are worth keeping.

:mod:`~benchmirt.profiles.clusters` finds groups of items that point different ways, :mod:`~benchmirt.profiles.own` how
much of a benchmark's score the study's other benchmarks do not share, :mod:`~benchmirt.profiles.items` what single items
add and which run backwards, and :mod:`~benchmirt.profiles.station` puts these together as tables for all benchmarks.

Modules are imported one by one, so that each rule's fingerprint holds those that it uses.
"""
