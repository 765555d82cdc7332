"""New models on the abilities of a finished study.

`calibration` is the frozen folder that a study leaves behind, `calibrate` makes it, `response` says how probable
answers are when items are known with error only, `posterior` places models, `person_fit` says how well a record agrees
with the study, `prediction` foretells benchmarks that were not run, `newcomers` reads outcomes and matches them with
the items, `scores` puts it together. `extension` adds the items of a new benchmark to a calibration, `linking` and `compared`
set two calibrations side by side.
"""
