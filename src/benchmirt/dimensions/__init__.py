"""The dimensions: consensus, reproducibility, stability, number, resampled families, names and tables.

Reproducibility (the same data, another seed) and stability (other models, other items) are two things and are
kept apart: a spare axis made of noise can agree over seeds at 1.00. Stability and the number of dimensions
are each judged against data simulated from the fitted model with one dimension less.
"""
