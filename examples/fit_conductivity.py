"""A conductivity that varies in space, fitted to temperatures over time by gradient descent in PyTorch.

A Halocline program computes a step and its adjoint, and PyTorch differentiates through all steps.

python examples/fit_conductivity.py [cells along each axis]
"""

import os
import sys

import halocline as hc

try:
    import torch
except ImportError:
    sys.exit(hc.print("skipped     PyTorch is missing. Install it with: pip install torch"))
n, c = int(sys.argv[1]) if len(sys.argv) > 1 else 64, 0.1  # c is dt/dx²
grid = hc.Grid((n, n), periodic=True)
T, k, back, slope = (grid.field(name) for name in ("T", "k", "back", "slope"))


def change(k, T):
    flows = [(k + hc.shift(k, axis, -1)) * (T - hc.shift(T, axis, -1)) for axis in (0, 1)]
    return T + c / 2 * sum(hc.shift(flow, axis) - flow for axis, flow in enumerate(flows))


@hc.program
def program(T, k, back, slope):  # back and slope are the derivatives of the misfit by T and k
    products = [(T - hc.shift(T, axis, -1)) * (back - hc.shift(back, axis, -1)) for axis in (0, 1)]
    total = sum(product + hc.shift(product, axis) for axis, product in enumerate(products))
    hc.assign({T: change(k, T), back: change(k, back), slope: -c / 2 * total})


class Step(torch.autograd.Function):
    @staticmethod
    def forward(context, *inputs):
        context.save_for_backward(*inputs)
        return step(inputs, [T])[0]

    @staticmethod
    def backward(context, gradient):
        return step((*context.saved_tensors, gradient), [slope, back])


def step(inputs, results):
    """Set k, T and back to tensors, do a step, and return copies of the results."""
    for field, values in zip((k, T, back), inputs, strict=False):
        torch.from_dlpack(sim.views[field]).copy_(values)  # writes into the field
    sim.step()
    return tuple(torch.from_dlpack(sim.views[field]).clone() for field in results)


sim = hc.Simulation(grid, program, threads=1)
sim[T] = lambda x, y: hc.sin(8 * torch.pi * x) + hc.sin(8 * torch.pi * y)
sim[k] = lambda x, y: 1 + hc.exp(-40 * ((x - 0.4) ** 2 + (y - 0.6) ** 2))
true, *data = (torch.from_dlpack(sim.views[field]).clone() for field in (k, T))
for _ in range(8):
    data.append(Step.apply(true, data[-1]))
fit = torch.zeros_like(true, requires_grad=True)  # logarithm of the conductivity
optimizer = torch.optim.Adam([fit], lr=0.1)
for _ in range(80):
    state, misfit = data[0], 0.0
    for measured in data[1:]:
        state = Step.apply(fit.exp(), state)
        misfit += ((state - measured) ** 2).sum()
    optimizer.zero_grad()
    misfit.backward()
    optimizer.step()
for field, values in ((k, fit.exp()), (back, true)):
    torch.from_dlpack(sim.views[field]).copy_(values.detach())
error, contrast = sim.evaluate(hc.max(abs(k - back)), hc.max(k) / hc.min(k))
hc.print(f"error       {error:.1e} of the conductivity, which varies by a factor of {contrast:.1f}")
hc.picture(
    sim, k, f"{os.environ.get('HALOCLINE_OUT', 'out')}/fit_conductivity.png", title="Fitted conductivity"
)
assert error < 0.1
