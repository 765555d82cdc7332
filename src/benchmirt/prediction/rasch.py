"""The additive model of model and item: logit = theta_i + d_j (Rasch 1960), with theta ~ N(0, s) and d ~ N(mu, t).

Abilities and intercepts are found by Fisher scoring in turn, and s, mu and t from their modes and the curvature there (an
empirical Bayes fit by EM with Laplace's approximation). Asymptotes enter as in :mod:`benchmirt.likelihood`, and predictions are
averaged over both posteriors (MacKay 1992), as those of the multidimensional fits are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from benchmirt.prediction.splits import Fold

__all__ = ["Rasch", "fit"]

Floats = NDArray[np.float64]

_ROUNDS = 30
_TOLERANCE = 5e-2  # logits
_LEAST = 0.05  # standard deviations do not fall below


@dataclass(frozen=True)
class Rasch:
    """A fitted additive model.

    Attributes
    ----------
    theta, theta_var
        Abilities and their posterior variances, shape (N,).
    d, d_var
        Intercepts and their posterior variances, shape (J,).
    s, mu, t
        Standard deviation of abilities, mean and standard deviation of intercepts.
    floor, ceiling
        Asymptotes, shape (J,).
    """

    theta: Floats
    theta_var: Floats
    d: Floats
    d_var: Floats
    s: float
    mu: float
    t: float
    floor: Floats
    ceiling: Floats

    def predict(self) -> Floats:
        """Probabilities averaged over the posterior, shape (N, J)."""
        variance = self.theta_var[:, None] + self.d_var
        eta = (self.theta[:, None] + self.d) / np.sqrt(1.0 + np.pi / 8.0 * variance)
        return np.asarray(self.floor + (self.ceiling - self.floor) * expit(eta))


def fit(
    responses: NDArray[np.int8], fold: Fold, floor: NDArray[np.floating], ceiling: NDArray[np.floating]
) -> Rasch:
    """Fit what a fold shows.

    Parameters
    ----------
    responses
        1, 0 or -1 (missing), shape (N, J).
    fold
        Which cells may be seen, and which models inform the items; all models get an ability.
    floor, ceiling
        Known asymptotes, shape (J,).
    """
    low, high = np.asarray(floor, np.float64), np.asarray(ceiling, np.float64)
    shown = (fold.shown & (responses >= 0)).astype(np.float32)
    right = shown * (responses == 1)
    informs = fold.models.astype(np.float32)
    span = (high - low).astype(np.float32)
    theta, d = np.zeros(responses.shape[0]), np.zeros(responses.shape[1])
    s, mu, t = 1.0, 0.0, 1.5
    theta_info, d_info = np.full(theta.size, 1.0), np.full(d.size, 1.0)

    def parts() -> tuple[NDArray[Any], NDArray[Any]]:
        """Score and information of every cell shown; single precision serves sums of so few."""
        logistic = expit((theta[:, None] + d).astype(np.float32))
        p = low.astype(np.float32) + span * logistic
        slope = span * logistic * (1.0 - logistic)
        weight = slope / np.maximum(p * (1.0 - p), np.float32(1e-6))
        return weight * (right - shown * p), shown * weight * slope

    for _ in range(_ROUNDS):
        score, information = parts()
        d_info = informs @ information + 1.0 / t**2
        step = (informs @ score - (d - mu) / t**2) / d_info
        d = d + np.clip(step, -1.0, 1.0)
        score, information = parts()
        theta_info = information.sum(axis=1) + 1.0 / s**2
        move = (score.sum(axis=1) - theta / s**2) / theta_info
        theta = theta + np.clip(move, -1.0, 1.0)
        # abilities and intercepts share a location, which the two would creep along
        centre = float(theta @ informs) / max(float(informs.sum()), 1.0)
        theta, d = theta - centre, d + centre
        mu = float(d.mean())
        t = max(_LEAST, float(np.sqrt((((d - mu) ** 2) + 1.0 / d_info).mean())))
        spread = ((theta**2 + 1.0 / theta_info) * informs).sum() / max(informs.sum(), 1.0)
        s = max(_LEAST, float(np.sqrt(spread)))
        if max(np.abs(step).max(initial=0.0), np.abs(move).max(initial=0.0)) < _TOLERANCE:
            break
    return Rasch(theta, 1.0 / theta_info, d, 1.0 / d_info, s, mu, t, low, high)
