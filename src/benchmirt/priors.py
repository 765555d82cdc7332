"""Scales of the model's hyperpriors, apart from the model itself so that engines that do without NumPyro need not load it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

__all__ = ["Priors"]


@dataclass(frozen=True)
class Priors:
    """Scales of the hyperpriors, in logits, and the tails of discriminations: the same for every number of dimensions.

    Attributes
    ----------
    tau_scale
        Scale of the half-normal prior of tau_k, the standard deviation of the discriminations.
    intercept_scale
        Scale of the normal prior of mu_d and of the half-normal prior of sigma_d.
    testlet_scale
        Scale of the half-normal prior of sigma_t, the standard deviation of the testlets' effects, where there are any.
    discrimination_df
        Degrees of freedom of the multivariate t distribution of an item's discriminations, whose tails are the heavier the
        fewer these are; None: a normal distribution.
    """

    tau_scale: float = 1.0
    intercept_scale: float = 2.0
    testlet_scale: float = 1.0
    discrimination_df: float | None = None

    def as_dict(self) -> dict[str, float | None]:
        """Return them by name, as fit records keep them."""
        return asdict(self)
