"""Stochastic variational inference with NumPyro: a diagonal Gaussian guide, full batch.

The whole optimisation is one compiled loop. The step size follows a cosine from ``learning_rate`` to 0, so that the noise of
the single-sample ELBO dies out (a rate that stays up never settles). Starts are random and differ by seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.infer import SVI, TraceMeanField_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.initialization import init_to_value
from numpyro.optim import Adam

from benchmirt import tiles
from benchmirt.inference.posterior import State, TestletEffects, report_frame, testlet_posterior
from benchmirt.inference.record import FitError, FitRecord
from benchmirt.likelihood import Asymptotes, asymptotes_of, testlet_index
from benchmirt.model import mirt
from benchmirt.priors import Priors
from benchmirt.provenance import versions
from benchmirt.tiles import Tiled

if TYPE_CHECKING:
    from benchmirt.matrix import ResponseData

__all__ = ["fit"]

START_SCALE = 0.1
FIRST_TESTLET_DEVIATION = 0.5
SETTLED = 5e-4


def _observed_rate(responses: Tiled) -> Array:
    """Share of right responses of each item, (items,), drawn a little towards a half."""

    def of_tile(tile: tiles.Tile, items: None, shared: None) -> tuple[None, Array]:
        seen = tile.responses >= 0
        return None, ((tile.responses == 1).sum(0) + 1.0) / (seen.sum(0) + 2.0)

    rate: Array = tiles.sweep(of_tile, responses, None)[1]
    return rate


def _start(key: Array, responses: Tiled, dims: int, testlets: int) -> dict[str, Array]:
    """Random abilities, and discriminations and intercepts that the observed means suggest."""
    models, items = responses.shape
    rate = _observed_rate(responses)
    theta_key, a_key = jax.random.split(key)
    return {
        "theta": 0.5 * jax.random.normal(theta_key, (models, dims)),
        "a": 0.5 * jax.random.normal(a_key, (items, dims)),
        "d": jnp.log(rate) - jnp.log1p(-rate),
        "tau": jnp.ones(dims),
        "mu_d": jnp.float32(0.0),
        "sigma_d": jnp.float32(1.5),
        "gamma": jnp.zeros((testlets, models)),
        "sigma_t": jnp.float32(FIRST_TESTLET_DEVIATION),
    }


def _posterior(parameters: dict[str, Array]) -> State:
    """Read the guide's means and scales; those of the hyperparameters, positive, live on the logarithm."""
    loc = {name: parameters[f"{name}_auto_loc"] for name in ("theta", "a", "d", "tau", "mu_d", "sigma_d")}
    scale = {name: parameters[f"{name}_auto_scale"] for name in ("theta", "a", "d")}
    item_scale = jnp.concatenate([scale["a"], scale["d"][:, None]], axis=1)
    return State(
        m=loc["theta"],
        v=jax.vmap(jnp.diag)(scale["theta"] ** 2),
        mu=jnp.concatenate([loc["a"], loc["d"][:, None]], axis=1),
        s=jax.vmap(jnp.diag)(item_scale**2),
        tau2=jnp.exp(2 * loc["tau"]),
        mu_d=loc["mu_d"],
        sigma2=jnp.exp(2 * loc["sigma_d"]),
        testlets=_effects(parameters) if "gamma_auto_loc" in parameters else None,
    )


def _effects(parameters: dict[str, Array]) -> TestletEffects:
    """Read the guide of the testlets' effects."""
    mean, scale = (parameters[f"gamma_auto_{part}"] for part in ("loc", "scale"))
    return TestletEffects(mean, scale**2, jnp.exp(2 * parameters["sigma_t_auto_loc"]))


@dataclass(frozen=True)
class _Plan:
    """What is known of a fit before it is compiled."""

    dims: int
    testlets: int
    steps: int
    learning_rate: float
    priors: Priors


@partial(jax.jit, static_argnames="plan")
def _optimise(
    responses: Tiled,
    asymptotes: Asymptotes | None,
    testlet: Array | None,
    keys: tuple[Array, Array],
    *,
    plan: _Plan,
) -> tuple[State, Array]:
    """Run all steps of Adam in one compiled loop; returns the posterior as records report it and the loss at each step."""
    return tiles.over_devices(partial(_steps, plan=plan), responses, asymptotes, testlet, keys)


def _steps(
    responses: Tiled,
    asymptotes: Asymptotes | None,
    testlet: Array | None,
    keys: tuple[Array, Array],
    *,
    plan: _Plan,
) -> tuple[State, Array]:
    start_key, run_key = keys
    start = _start(start_key, responses, plan.dims, plan.testlets)
    guide = AutoNormal(mirt, init_loc_fn=init_to_value(values=start), init_scale=START_SCALE)
    cosine = Adam(lambda step: plan.learning_rate * 0.5 * (1.0 + jnp.cos(jnp.pi * step / plan.steps)))
    svi = SVI(mirt, guide, cosine, TraceMeanField_ELBO())
    inputs = (responses, plan.dims, asymptotes, plan.priors)
    with_testlets = {"testlet": testlet, "testlets": plan.testlets}
    state = svi.init(run_key, *inputs, **with_testlets)
    state, losses = jax.lax.scan(
        lambda state, _: svi.update(state, *inputs, **with_testlets), state, length=plan.steps
    )
    models, items = responses.shape
    posterior = _posterior(svi.get_params(state))
    return report_frame(posterior, jnp.ones(models), jnp.ones(items), plan.priors), losses


def fit(
    data: ResponseData,
    dims: int,
    *,
    seed: int = 0,
    steps: int = 300,
    learning_rate: float = 0.1,
    priors: Priors | None = None,
    devices: Sequence[jax.Device] = (),
) -> FitRecord:
    """Fit by SVI.

    Parameters
    ----------
    data
        Responses (models, items) with their asymptotes; effects of testlets are modelled where items have any.
    dims
        Number of dimensions.
    seed
        Seed of the start and of the ELBO's samples.
    steps, learning_rate
        Steps of Adam, and the step size at their beginning (in units of the guide's parameters).
    priors
        Scales of the hyperpriors.
    devices
        Devices that share the items, of this process or of several; by default the first one does it all.

    Raises
    ------
    FitError
        If the loss ceases to be finite; the message names the step.
    """
    priors = priors or Priors()
    start_key, run_key = jax.random.split(jax.random.key(seed))
    state, losses = _optimise(
        tiles.split(data.responses, tiles.mesh_of(devices)),
        asymptotes_of(data.floor, data.ceiling),
        testlet_index(data.testlet),
        (start_key, run_key),
        plan=_Plan(dims, data.testlets, steps, learning_rate, priors),
    )
    trace = np.asarray(losses, np.float64)
    if not np.isfinite(trace).all():
        raise FitError(
            f"SVI with {dims} dimensions, seed {seed}: the loss is not finite from step "
            f"{int(np.flatnonzero(~np.isfinite(trace))[0]) + 1} of {steps} on; try a smaller learning rate"
        )
    models, items = data.responses.shape
    window = max(1, steps // 10)
    recent, before = trace[-window:], trace[-2 * window : -window]
    drift = abs(before.mean() - recent.mean()) / models / items
    # each step's loss is one noisy sample: on a small matrix that moves the means by more than any drift that matters
    noise = float(np.sqrt((before.var() + recent.var()) / window)) / models / items
    limit = SETTLED + 2 * noise
    converged = bool(drift < limit)
    return FitRecord(
        engine="svi",
        dims=dims,
        seed=seed,
        theta_mean=np.asarray(state.m),
        theta_cov=np.asarray(state.v),
        a_mean=np.asarray(state.mu[:, :-1]),
        d_mean=np.asarray(state.mu[:, -1]),
        item_cov=np.asarray(state.s),
        tau=np.sqrt(np.asarray(state.tau2)),
        mu_d=float(state.mu_d),
        sigma_d=float(np.sqrt(state.sigma2)),
        trace=trace,
        testlets=None if state.testlets is None else testlet_posterior(state.testlets, data.testlet),
        models=data.models,
        items=data.items,
        data_hash=data.hash,
        priors=priors.as_dict(),
        diagnostics={
            "steps": steps,
            "learning_rate": learning_rate,
            "loss": float(recent.mean()),
            "drift_per_cell": float(drift),
            "noise_per_cell": noise,
            "start": "random",
        },
        versions=versions(),
        converged=converged,
        converged_why=(
            f"the loss per cell moved by {drift:.1e} over the last tenth of {steps} steps "
            f"({'below' if converged else 'not below'} {limit:.1e}: {SETTLED:.0e} and twice the noise of {noise:.0e})"
        ),
    )
