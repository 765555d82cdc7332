"""Classical data with published estimates: LSAT6 and LSAT7 (Bock and Lieberman 1970)."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from benchmirt import matrix
from benchmirt.inference import quadrature

LSAT6 = "3 6 2 11 1 1 3 4 1 8 0 16 0 3 2 15 10 29 14 81 3 28 15 80 16 56 21 173 11 61 28 298"
LSAT7 = "12 19 1 7 3 19 3 17 10 5 3 7 7 23 8 28 7 39 11 34 14 51 15 90 6 25 7 35 18 136 32 308"


def responses(frequencies):
    """Examinees (1000, 5) from pattern frequencies in binary order, the last item changing fastest."""
    counts = [int(x) for x in frequencies.split()]
    patterns = np.array(list(product((0, 1), repeat=5)), np.int8)
    return matrix.from_arrays(np.repeat(patterns, counts, axis=0))


@pytest.mark.parametrize(
    ("frequencies", "a", "d", "log_likelihood"),
    [
        pytest.param(
            LSAT6,
            [0.826, 0.723, 0.891, 0.688, 0.657],
            [2.773, 0.990, 0.249, 1.285, 2.053],
            -2466.65,
            id="LSAT6, as R's ltm",
        ),
        pytest.param(
            LSAT7,
            [0.988, 1.081, 1.707, 0.765, 0.736],
            [1.856, 0.808, 1.805, 0.486, 1.854],
            -2658.81,
            id="LSAT7, as R's mirt",
        ),
    ],
)
def test_published_estimates_are_met(frequencies, a, d, log_likelihood):
    data = responses(frequencies)
    assert data.responses.shape == (1000, 5)
    found = quadrature.fit(data)
    assert found.log_likelihood == pytest.approx(log_likelihood, abs=0.01)
    np.testing.assert_allclose(found.a[:, 0], a, atol=0.003)
    np.testing.assert_allclose(found.d, d, atol=0.003)
    assert found.gradient_max < 1e-2


def test_two_dimensions_never_fit_worse_than_one():
    data = responses(LSAT7)
    two = quadrature.fit(data, 2, nodes=15)
    assert two.log_likelihood >= quadrature.fit(data, 1, nodes=15).log_likelihood - 1e-4


@pytest.mark.parametrize("dims", [0, 3])
def test_other_dimensions_are_refused(dims):
    with pytest.raises(ValueError, match="1 or 2 dimensions"):
        quadrature.fit(responses(LSAT6), dims)
