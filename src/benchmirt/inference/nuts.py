"""NUTS with NumPyro, in coordinates that a variational EM fit makes nearly isotropic.

The sampler moves in standardised coordinates z: abilities theta_i = m_i + L_i z_i, items b_j = mu_j + C_j z_j with the Cholesky
factors of the EM posterior, the items' after their moments were matched (:mod:`benchmirt.inference.moments`: a bound makes those
of items near their floor too narrow), and the hyperparameters on (log) scales of their own. These are affine changes of
variables, so the posterior is that of :func:`benchmirt.model.mirt` to the letter; the mass matrix can stay the identity,
warm-up only needs to find a step size, and steps are rotations (:mod:`benchmirt.inference.chains`): 15 of them make a
trajectory at 100 models and 30,000 items. Item parameters live in the frame of the abilities' sample (``framed``), so location
and scale are settled in every draw; rotation and signs are settled by orthogonal Procrustes onto the EM solution, draw by draw.

Draws are produced in blocks. Of every block the abilities and some items, the extreme ones among them, are kept in full, and all
items as running moments and a thinned set. After each block the chains can be written to a checkpoint, from which a killed run
goes on to the same draws.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh
from numpy.typing import NDArray
from numpyro.diagnostics import effective_sample_size, gelman_rubin
from numpyro.infer.util import log_density

from benchmirt import provenance, tiles
from benchmirt.inference import em
from benchmirt.inference.chains import STATS, Chains, Plan, mesh_of
from benchmirt.inference.draws import Checkpoint, Kept, Moments
from benchmirt.inference.moments import match_items
from benchmirt.inference.posterior import State, effects_of, state_of
from benchmirt.inference.record import FitRecord, TestletPosterior
from benchmirt.likelihood import Asymptotes, asymptotes_of, item_log_likelihood, testlet_index
from benchmirt.model import mirt, sample_frame
from benchmirt.priors import Priors
from benchmirt.progress import progress
from benchmirt.provenance import versions
from benchmirt.tiles import Tiled

if TYPE_CHECKING:
    from benchmirt.matrix import ResponseData

__all__ = ["fit"]

BLOCK = 50
LEAST_DRAWS = 4
EFFECTS = ("gamma", "sigma_t")
KEPT_ITEM_DRAWS = 100  # at least, of all items, and more of them where that many values take little room:
KEPT_ITEM_VALUES = 4_000_000
CHECKED_ITEMS = 500
_by_item = jax.jit(item_log_likelihood)
START_SPREAD = 0.5
ABILITY_STRETCH = 1.3  # EM holds the items fixed where it says how sure an ability is; the weakest models' are wider by half
RHAT_LIMIT = 1.01
ESS_LIMIT = 400.0


def _chart(problem: _Problem) -> tuple[Callable[[Array], tuple[dict[str, Array], Array]], int]:
    """Return the map from a vector of standardised coordinates to the sites of the framed model, and the vector's length.

    The map also returns its log volume. One vector, in which each parameter of all items or models is a stretch, spares the
    sampler the packing of many arrays at each step.
    """
    state = problem.state
    (models, k), items = state.m.shape, state.mu.shape[0]
    # posterior standard deviations of log tau, mu_d and log sigma_d given the other parameters
    log_scale = 1.0 / np.sqrt(2.0 * items)
    mean_scale = jnp.sqrt(state.sigma2 / items)
    sizes = [models] * k + [items] * (k + 1) + [k, 1, 1]
    effects = state.testlets
    if effects is not None:
        sizes += [effects.mean.size, 1]

    def sites(z: Array) -> tuple[dict[str, Array], Array]:
        parts = jax.lax.split(z, sizes)
        tau, mu_d, sigma_d = parts[2 * k + 1 : 2 * k + 4]
        log_tau = 0.5 * jnp.log(state.tau2) + log_scale * tau
        log_sigma = 0.5 * jnp.log(state.sigma2) + log_scale * sigma_d[0]
        values = {
            "theta": _placed(state.m, problem.theta_tril, parts[:k]),
            "item": _placed(state.mu, problem.item_tril, parts[k : 2 * k + 1]),
            "tau": jnp.exp(log_tau),
            "mu_d": state.mu_d + mean_scale * mu_d[0],
            "sigma_d": jnp.exp(log_sigma),
        }
        volume = log_tau.sum() + log_sigma
        if effects is None:
            return values, volume
        gamma, sigma_t = parts[-2:]
        log_sigma_t = 0.5 * jnp.log(effects.prior) + sigma_t[0] / np.sqrt(2.0 * effects.mean.size)
        values["gamma"] = effects.mean + jnp.sqrt(effects.variance) * gamma.reshape(effects.mean.shape)
        values["sigma_t"] = jnp.exp(log_sigma_t)
        return values, volume + log_sigma_t

    return sites, sum(sizes)


def _placed(mean: Array, tril: Array, z: Sequence[Array]) -> Array:
    """Means (n, p) plus Cholesky factors (n, p, p) times coordinates, which come as p vectors of length n."""
    columns = [
        mean[:, p] + sum((tril[:, p, q] * z[q] for q in range(p)), tril[:, p, p] * z[p])
        for p in range(len(z))
    ]
    return jnp.stack(columns).T


def _framed(values: dict[str, Array]) -> tuple[Array, Array, Array]:
    """Abilities, discriminations and intercepts of one draw in the frame of the abilities' sample."""
    theta = values["theta"]
    center, scale = sample_frame(theta)
    k = theta.shape[1]
    inverse = jax.scipy.linalg.solve_triangular(scale, jnp.eye(k), lower=True)
    framed = (theta - center) @ inverse.T
    return framed, values["item"][:, :k], values["item"][:, k]


def _aligned(theta: Array, a: Array, target: Array) -> tuple[Array, Array]:
    """Rotate one draw onto the target discriminations by orthogonal Procrustes (Schoenemann 1966)."""
    left, _, right = jnp.linalg.svd(a.T @ target)
    rotation = left @ right
    return theta @ rotation, a @ rotation


def _normal_scores(values: NDArray[Any]) -> NDArray[np.float64]:
    """Replace draws (chain, draw, ...) by normal scores of their ranks over all of them (Vehtari et al. 2021)."""
    from scipy.stats import norm, rankdata

    flat = values.reshape(values.shape[0] * values.shape[1], -1)
    ranks = rankdata(flat, axis=0)
    return np.asarray(norm.ppf((ranks - 0.375) / (len(flat) + 0.25)).reshape(values.shape))


def _halves(values: NDArray[Any]) -> NDArray[Any]:
    """Split every chain in two: (chain, draw, ...) becomes (2 chain, draw / 2, ...)."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]], axis=0)


def rank_rhat(draws: NDArray[Any]) -> NDArray[np.float64]:
    """Rank-normalised split R-hat, the larger of bulk and folded (Vehtari et al. 2021), draws (chain, draw, ...)."""
    halves = _halves(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(gelman_rubin(_normal_scores(halves)), gelman_rubin(_normal_scores(folded)))


def _ess(halves: NDArray[Any]) -> NDArray[np.float64]:
    """Effective sample size of split chains; 0 for a quantity that never moved."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.asarray(effective_sample_size(halves)), nan=0.0)


def bulk_ess(draws: NDArray[Any]) -> NDArray[np.float64]:
    """Bulk effective sample size (Vehtari et al. 2021) of draws (chain, draw, ...)."""
    return _ess(_normal_scores(_halves(draws)))


def tail_ess(draws: NDArray[Any]) -> NDArray[np.float64]:
    """Tail effective sample size (Vehtari et al. 2021): the lesser of those of the 5 % and the 95 % quantile."""
    low, high = np.quantile(draws, (0.05, 0.95), axis=(0, 1))
    return np.minimum(*(_ess(_halves((draws <= limit).astype(np.float64))) for limit in (low, high)))


def _checked_items(a: NDArray[Any], d: NDArray[Any]) -> NDArray[np.int64]:
    """Items whose draws are kept in full: the most and least discriminating, easiest and hardest, and others at random."""
    size = np.linalg.norm(a, axis=1)
    extreme = 10
    ends = [
        part for order in (np.argsort(size), np.argsort(d)) for part in (order[:extreme], order[-extreme:])
    ]
    first = np.unique(np.concatenate(ends))
    others = np.setdiff1d(np.arange(len(d)), first)
    wanted = min(max(CHECKED_ITEMS - len(first), 0), len(others))
    drawn = np.random.default_rng(0).choice(others, wanted, replace=False)
    return np.sort(np.concatenate([first, drawn]))


class _Problem(NamedTuple):
    """What the sampler knows: responses by tile, asymptotes, the items' testlets, and the posterior that it begins from.

    The reference (items,) is subtracted from the items' log likelihoods. The lower Cholesky factors of abilities (models, K, K)
    and items (items, K + 1, K + 1) are found beforehand: devices that each find many at once wait for one another for ever.
    """

    responses: Tiled
    asymptotes: Asymptotes | None
    testlet: Array | None
    state: State
    theta_tril: Array
    item_tril: Array
    reference: Array


def _problem(data: ResponseData, state: State, priors: Priors, mesh: Mesh) -> _Problem:
    """Put the problem together, with the moments of the items matched to their posteriors given the abilities."""
    plain, testlet = tiles.split(data.responses), testlet_index(data.testlet)
    asymptotes = asymptotes_of(data.floor, data.ceiling)
    state = match_items(state, plain, asymptotes, priors, testlet)
    effects = effects_of(state, testlet)
    reference = _by_item(state.m, state.mu[:, :-1], state.mu[:, -1], plain, asymptotes, effects)
    shared = mesh.shape[tiles.AXIS] > 1
    responses = tiles.split(data.responses, mesh) if shared else plain
    theta_tril = ABILITY_STRETCH * jnp.linalg.cholesky(state.v)
    item_tril = jnp.linalg.cholesky(state.s)
    return _Problem(responses, asymptotes, testlet, state, theta_tril, item_tril, reference)


@dataclass(frozen=True)
class _Potential:
    """Makes the potential of a problem; equal ones share a compilation."""

    dims: int
    testlets: int
    priors: Priors

    def __call__(self, problem: _Problem) -> Callable[[Array], Array]:
        sites = _chart(problem)[0]
        given = (problem.responses, self.dims, problem.asymptotes, self.priors, problem.reference)
        options = {"framed": True, "testlet": problem.testlet, "testlets": self.testlets}

        def potential(z: Array) -> Array:
            """Minus the log density of the framed model at standardised coordinates."""
            values, volume = sites(z)
            density, _ = log_density(mirt, given, options, values)
            return -(density + volume)

        return potential


def _report(problem: _Problem, z: Array) -> dict[str, Array]:
    """Return what is kept of a draw, aligned to the EM solution."""
    values = _chart(problem)[0](z)[0]
    theta, a, d = _framed(values)
    theta, a = _aligned(theta, a, problem.state.mu[:, :-1])
    effects = {name: values[name] for name in EFFECTS if name in values}
    return {"theta": theta, "item": jnp.concatenate([a, d[:, None]], axis=1), **effects}


def fit(
    data: ResponseData,
    dims: int,
    *,
    seed: int = 0,
    chains: int = 2,
    warmup: int = 200,
    draws: int = 500,
    thinning: int = 1,
    max_tree_depth: int = 5,
    priors: Priors | None = None,
    checkpoint: Path | None = None,
    devices: Sequence[jax.Device] = (),
) -> FitRecord:
    """Sample the posterior by NUTS.

    Parameters
    ----------
    data
        Responses (models, items) with their asymptotes.
    dims
        Number of dimensions.
    seed
        Seed of the chains and of their starts.
    chains, warmup, draws
        Chains (in parallel where JAX has as many devices), steps of warm-up (which find the step size), and draws per chain.
    thinning
        Trajectories from one draw to the next.
    max_tree_depth
        The deepest tree (31 leapfrog steps at 5).
    priors
        Scales of the hyperpriors.
    checkpoint
        File that keeps the chains after each block; a run that finds it goes on where it ended. Whoever writes the record
        removes it.
    devices
        Devices that share the items of one chain after the other; by default each chain has its own, if there are enough.

    Raises
    ------
    ValueError
        If ``draws`` is below 4, too few to judge convergence by.
    FitError
        If the EM start fails or a draw is not finite.
    """
    if draws < LEAST_DRAWS:
        raise ValueError(f"at least {LEAST_DRAWS} draws are needed to judge convergence, not {draws}")
    priors = priors or Priors()
    start = em.fit(data, dims, priors=priors)
    mesh = mesh_of(chains, devices)
    problem = _problem(data, state_of(start), priors, mesh)
    state = problem.state
    key, start_key = jax.random.split(jax.random.key(seed))
    initial = START_SPREAD * jax.random.normal(start_key, (chains, _chart(problem)[1]))

    plan = Plan(warmup, min(BLOCK, draws), thinning, max_tree_depth)
    sampler = Chains(_Potential(dims, data.testlets, priors), _report, problem, plan, mesh)
    target = state.mu[:, :-1]
    checked = _checked_items(np.asarray(target), np.asarray(state.mu[:, -1]))
    thin = max(1, chains * draws // max(KEPT_ITEM_DRAWS, KEPT_ITEM_VALUES // state.mu.size))
    effects = state.testlets
    kept = Kept(
        Moments(np.asarray(state.mu, np.float64)),
        None if effects is None else Moments(np.asarray(effects.mean, np.float64).reshape(-1, 1)),
    )
    code = provenance.fingerprint(["benchmirt.inference.nuts"])
    told = [code, data.hash, dims, seed, chains, astuple(plan), thin, len(devices), priors.as_dict()]
    saved = Checkpoint(checkpoint, hashlib.sha256(json.dumps(told).encode()).hexdigest())
    current = sampler.begin(jax.random.split(key, chains), initial)
    current = saved.read(kept, current) or current
    warm = [min(plan.block, warmup - first) for first in range(0, warmup, plan.block)]
    drawn = [plan.block] * -(-draws // plan.block)
    steps = [(count, False) for count in warm] + [(count, True) for count in drawn]
    what = f"NUTS, {chains} chains, warm-up and draws in blocks of {plan.block}"
    for index, (count, keep) in enumerate(progress(steps, total=len(steps), what=what)):
        if index < kept.warm + kept.blocks:
            continue
        if keep:
            current, block_draws = sampler.draw(current, count)
            kept.add({name: np.asarray(x) for name, x in block_draws.items()}, thin=thin, checked=checked)
        else:
            current = sampler.warm(current, count)
            kept.warm += 1
        saved.write(kept, current)
    settings = {
        "chains": chains,
        "warmup": warmup,
        "draws": sum(drawn),
        "thinning": thinning,
        "max_tree_depth": max_tree_depth,
        "thin": thin,
        "start": "em",
    }
    return _record(data, dims, seed, priors, kept, settings)


def _record(
    data: ResponseData,
    dims: int,
    seed: int,
    priors: Priors,
    kept: Kept,
    settings: dict[str, Any],
) -> FitRecord:
    """Assemble the record and judge convergence on the aligned abilities and the items that are kept in full."""
    theta, item = kept.joined("theta"), kept.joined("item")
    sample_stats = {name: kept.joined(name) for name in STATS}
    item_mean, item_cov = kept.moments.result()
    flat = theta.reshape(-1, *theta.shape[2:]).astype(np.float64)
    mean = flat.mean(0)
    centered = flat - mean
    theta_cov = np.einsum("snk,snl->nkl", centered, centered) / max(len(flat) - 1, 1)
    divergences = int(sample_stats["diverging"].sum())
    judged = {"abilities": theta, "items": kept.joined("checked")}
    testlets = None
    if kept.effects is not None:
        sigma_t = kept.joined("sigma_t")
        judged["sigma_t"] = sigma_t[..., None]
        testlets = _testlets(data, kept.effects, float(sigma_t.mean()))
    rhat = {name: float(rank_rhat(draws).max()) for name, draws in judged.items()}
    ess = {
        name: min(float(bulk_ess(draws).min()), float(tail_ess(draws).min()))
        for name, draws in judged.items()
    }
    worst, least = max(rhat.values()), min(ess.values())
    faults = [
        f"R-hat of the aligned {name} reaches {value:.3f} (limit {RHAT_LIMIT})"
        for name, value in rhat.items()
        if not value < RHAT_LIMIT
    ]
    faults += [
        f"the least effective sample size of the {name} is {value:.0f} (limit {ESS_LIMIT:.0f})"
        for name, value in ess.items()
        if not value >= ESS_LIMIT
    ]
    if divergences:
        faults.append(f"{divergences} draws diverged")
    # the hyperparameters as they stand in the frame of the record: moments of the items, posterior variance included
    second = (item_mean[:, :dims] ** 2 + np.diagonal(item_cov, axis1=1, axis2=2)[:, :dims]).mean(0)
    intercept = item_mean[:, dims]
    return FitRecord(
        engine="nuts",
        dims=dims,
        seed=seed,
        theta_mean=mean,
        theta_cov=theta_cov,
        a_mean=item_mean[:, :dims],
        d_mean=item_mean[:, dims],
        item_cov=item_cov,
        tau=np.sqrt(second),
        mu_d=float(intercept.mean()),
        sigma_d=float(np.sqrt(intercept.var() + item_cov[:, dims, dims].mean())),
        trace=sample_stats["potential_energy"].mean(0).astype(np.float64),
        models=data.models,
        items=data.items,
        data_hash=data.hash,
        priors=priors.as_dict(),
        diagnostics={
            **settings,
            "checked_items": int(judged["items"].shape[2]),
            "rhat_max": worst,
            "ess_min": least,
            **{f"rhat_max_{name}": value for name, value in rhat.items()},
            **{f"ess_min_{name}": value for name, value in ess.items()},
            "divergences": divergences,
            "accept_prob": float(sample_stats["accept_prob"].mean()),
            "leapfrogs_mean": float(sample_stats["num_steps"].mean()),
            "deepest_trees": float((sample_stats["num_steps"] >= 2 ** settings["max_tree_depth"] - 1).mean()),
        },
        versions=versions(),
        converged=not faults,
        converged_why="; ".join(faults)
        or f"R-hat at most {worst:.3f}, effective sample size at least {least:.0f}, no divergences",
        draws={"theta": theta, "a": item[..., :dims], "d": item[..., dims]},
        sample_stats=sample_stats,
        testlets=testlets,
    )


def _testlets(data: ResponseData, moments: Moments, sigma_t: float) -> TestletPosterior:
    """Arrange the moments of the effects, which come one below the other, as records have them."""
    mean, variance = (values.reshape(data.testlets, len(data.models)).T for values in moments.result())
    return TestletPosterior(mean, variance, sigma_t, data.testlet)
