"""Engines behind one interface and one fit record: SVI, variational EM and NUTS."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmirt.errors import InputError, nearest
from benchmirt.inference import memory
from benchmirt.inference.record import FitError, FitRecord
from benchmirt.priors import Priors

if TYPE_CHECKING:
    from jax import Device

    from benchmirt.matrix import ResponseData

__all__ = ["ENGINES", "FitError", "FitRecord", "check_dims", "fit", "fit_to_file"]

log = logging.getLogger(__name__)

ENGINES = ("svi", "em", "nuts")


def check_dims(models: int, items: int, dims: int) -> None:
    """Check that a matrix of this size can carry so many dimensions.

    Raises
    ------
    InputError
        If it can't, with the number that it could.
    """
    most = min(models - 1, items)
    if not 1 <= dims <= most:
        raise InputError(
            f"{dims} dimensions cannot be fitted to {models} models and {items} items",
            expected=f"1 to {most} dimensions for this matrix"
            if most > 0
            else "at least 2 models and 1 item",
            todo="lower the number of dimensions or add models",
        )


def fit(
    data: ResponseData,
    *,
    engine: str,
    dims: int,
    seed: int,
    options: Mapping[str, Any] | None = None,
    priors: Mapping[str, float] | None = None,
    checkpoint: Path | None = None,
    devices: int = 1,
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
        Scales of the hyperpriors (:class:`benchmirt.priors.Priors`).
    checkpoint
        File from which a killed run of NUTS goes on; whoever writes the record removes it. Other engines are done before
        it would serve.
    devices
        How many of JAX's devices share the items. With 1, NUTS gives each chain one, where there are enough; with more,
        they go through one chain after the other.

    Raises
    ------
    InputError
        If the engine is unknown, the dimensions are impossible for this matrix, memory would not suffice, or there are
        fewer devices.
    FitError
        If numbers cease to be finite; nothing is returned then.
    """
    if engine not in ENGINES:
        raise InputError(
            f"there is no engine {engine!r}",
            expected=", ".join(ENGINES),
            todo=f"did you mean {nearest(engine, list(ENGINES)) or 'svi'}?",
        )
    options = dict(options or {})
    if engine == "nuts":
        options["checkpoint"] = checkpoint
    if devices > 1:
        options["devices"] = _devices(devices)
    models, items = data.responses.shape
    check_dims(models, items, dims)
    memory.check(
        engine, models, items, dims, **{key: options[key] for key in ("chains", "draws") if key in options}
    )
    # by name, so that a rule's fingerprint holds the one engine that it runs
    fitted: FitRecord = import_module(f"benchmirt.inference.{engine}").fit(
        data, dims, seed=seed, priors=Priors(**(priors or {})), **options
    )
    return fitted


def _devices(number: int) -> Sequence[Device]:
    """Return the first devices of all processes.

    Raises
    ------
    InputError
        If there are fewer.
    """
    import jax

    found = jax.devices()
    if len(found) < number:
        raise InputError(
            f"{number} devices are to share the items of one fit",
            found=f"{len(found)} here ({found[0].platform})",
            todo="Set fits.devices to what there is, or run the fit where there are as many",
        )
    return found[:number]


def fit_to_file(
    data: ResponseData,
    path: str | Path,
    *,
    engine: str,
    dims: int,
    seed: int,
    options: Mapping[str, Any] | None = None,
    priors: Mapping[str, float] | None = None,
    devices: int = 1,
) -> None:
    """Fit and write the record; where the fit fails, write and say that this seed failed and why.

    A failed seed ends nothing: it is listed beside the others, which are judged without it. Parameters are those of
    :func:`fit`; a sampler's checkpoint lies beside the record until that is written.

    Raises
    ------
    InputError
        As :func:`fit`.
    """
    checkpoint = Path(f"{path}.checkpoint")
    try:
        record = fit(
            data,
            engine=engine,
            dims=dims,
            seed=seed,
            options=options,
            priors=priors,
            checkpoint=checkpoint,
            devices=devices,
        )
        record.save(path)
    except FitError as error:
        log.warning("This seed failed and is listed as such: %s", error)
        FitRecord.save_failure(path, engine=engine, dims=dims, seed=seed, data_hash=data.hash, why=str(error))
    checkpoint.unlink(missing_ok=True)
