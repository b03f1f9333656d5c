"""The exact solution of Sod's shock tube: a rarefaction, a contact and a shock (Toro 2009, Chapter 4)."""

import numpy as np
from gas import GAMMA


def density(x, t, left=(1.0, 1.0), right=(0.125, 0.1)):
    """Return the density at x and time t, for gas of (density, pressure) at rest on both sides of x = 1/2."""
    (rho_l, p_l), (rho_r, p_r) = left, right
    c_l, g = np.sqrt(GAMMA * p_l / rho_l), (GAMMA - 1) / (GAMMA + 1)
    cooling = (GAMMA - 1) / (2 * GAMMA)

    def behind_rarefaction(p):
        return 2 * c_l / (GAMMA - 1) * (1 - (p / p_l) ** cooling)

    def behind_shock(p):
        return (p - p_r) * np.sqrt((1 - g) / (rho_r * (p + g * p_r)))

    low, high = p_r, p_l
    for _ in range(60):  # both sides of the contact move at one speed
        p = (low + high) / 2
        low, high = (p, high) if behind_rarefaction(p) > behind_shock(p) else (low, p)
    contact = behind_shock(p)
    rho_contact, rho_shock = rho_l * (p / p_l) ** (1 / GAMMA), rho_r * (p / p_r + g) / (g * p / p_r + 1)
    head, tail = -c_l, contact - c_l * (p / p_l) ** cooling
    shock = contact / (1 - rho_r / rho_shock)

    s = (x - 0.5) / t
    fan = rho_l * (2 / (GAMMA + 1) - g * s / c_l) ** (2 / (GAMMA - 1))
    ahead = np.where(s < shock, rho_shock, rho_r)
    return np.where(s < head, rho_l, np.where(s < tail, fan, np.where(s < contact, rho_contact, ahead)))
