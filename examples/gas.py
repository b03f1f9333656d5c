"""An ideal gas: its state, its fluxes, and the Riemann problem between two states.

U holds density, momentum and energy, and w holds density, velocity and pressure. The formulas are those of
Toro (2009), Riemann Solvers and Numerical Methods for Fluid Dynamics, Chapters 3 and 10, on grids of one to
three axes.
"""

import halocline as hc

GAMMA = 1.4


def primitive(U):
    rho, *m, E = U
    motion = 0.5 * hc.symmetric_sum(*(k * k for k in m)) / rho
    return hc.Vector((rho, *(k / rho for k in m), (GAMMA - 1) * (E - motion)))


def conserved(w):
    rho, *v, p = w
    motion = 0.5 * rho * hc.symmetric_sum(*(u * u for u in v))
    return hc.Vector((rho, *(rho * u for u in v), p / (GAMMA - 1) + motion))


def sound(w):
    return hc.sqrt(GAMMA * w[-1] / w[0])


def flux(w, axis):
    _, *v, p = w
    rho, *m, E = conserved(w)
    momentum = [k * v[axis] + p * (a == axis) for a, k in enumerate(m)]
    return hc.Vector((rho * v[axis], *momentum, (E + p) * v[axis]))


def hllc(left, right, axis):
    """Return the flux between two states, from an approximate solution with three waves."""
    (rho_l, *v_l, p_l), (rho_r, *v_r, p_r) = left, right
    slow = hc.min(v_l[axis] - sound(left), v_r[axis] - sound(right))
    fast = hc.max(v_l[axis] + sound(left), v_r[axis] + sound(right))
    push_l, push_r = rho_l * (slow - v_l[axis]), rho_r * (fast - v_r[axis])
    middle = (p_r - p_l + push_l * v_l[axis] - push_r * v_r[axis]) / (push_l - push_r)

    def jump(w, speed, push):
        """Return the change of U across an outer wave, from the state `w` outside to the state inside."""
        U, density = conserved(w), push / (speed - middle)
        momentum = [density * (middle if a == axis else u) for a, u in enumerate(w[1:-1])]
        energy = density * (U[-1] / U[0] + (middle - w[1 + axis]) * (middle + w[-1] / push))
        return hc.Vector((density, *momentum, energy)) - U

    from_left = hc.symmetric_sum(flux(left, axis), hc.min(slow, 0.0) * jump(left, slow, push_l))
    from_right = hc.symmetric_sum(flux(right, axis), hc.max(fast, 0.0) * jump(right, fast, push_r))
    return hc.branch(middle > 0, from_left, from_right)
