"""Prediction of held-out outcomes: which splits, by which methods, how good.

:mod:`splits` says what is held out, :mod:`methods` predicts it (simple means in :mod:`baselines`, additive models in
:mod:`rasch`, multidimensional ones by variational EM), :mod:`tally` counts how well, :mod:`intervals` says how sure that is,
and :mod:`station` runs it all for a study.
"""
