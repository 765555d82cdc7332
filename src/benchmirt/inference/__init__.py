"""Engines behind one interface and one fit record: SVI, variational EM and NUTS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchmirt.errors import InputError, nearest
from benchmirt.inference import em, memory, nuts, svi
from benchmirt.inference.record import FitError, FitRecord
from benchmirt.model import Priors

if TYPE_CHECKING:
    from benchmirt.matrix import ResponseData

__all__ = ["ENGINES", "FitError", "FitRecord", "fit"]

ENGINES = {"svi": svi.fit, "em": em.fit, "nuts": nuts.fit}


def fit(
    data: ResponseData,
    *,
    engine: str,
    dims: int,
    seed: int,
    options: Mapping[str, Any] | None = None,
    priors: Mapping[str, float] | None = None,
) -> FitRecord:
    """Fit the response model with one engine.

    Parameters
    ----------
    data
        Responses (models, items), asymptotes and names.
    engine
        ``svi``, ``em`` or ``nuts``.
    dims
        Number of dimensions, from 1 to one less than the number of models.
    seed
        Seed of everything random in the fit.
    options
        The engine's own settings (see its ``fit``).
    priors
        Scales of the hyperpriors (:class:`benchmirt.model.Priors`).

    Raises
    ------
    InputError
        If the engine is unknown, the dimensions are impossible for this matrix, or memory would not suffice.
    FitError
        If numbers cease to be finite; nothing is returned then.
    """
    if engine not in ENGINES:
        raise InputError(
            f"there is no engine {engine!r}",
            expected=", ".join(ENGINES),
            todo=f"did you mean {nearest(engine, list(ENGINES)) or 'svi'}?",
        )
    em.check_dims(data, dims)
    options = dict(options or {})
    models, items = data.responses.shape
    memory.check(engine, models, items, dims, chains=int(options.get("chains", 1)))
    fitted: FitRecord = ENGINES[engine](data, dims, seed=seed, priors=Priors(**(priors or {})), **options)  # type: ignore[operator]
    return fitted
