"""Order of the values of a cell that reduces the number of live registers.

A thread of a device has at most 255 registers. In the order of the results, many values of a large right-hand
side are live for a long time. For example, a gradient that the first equation uses is live until the last
equation has used it. The pass therefore schedules operations early if they end the life of values, and
stores results as soon as they are computed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import takewhile

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel
from halocline.lang.dtype import ITEMSIZE

REORDER_LIMIT = 96  # registers; the pass reorders only values that need more
GROUP_SIZES = (4, 2, 1)  # maximum number of values in a group; measurements: docs/performance.md
REGISTER_LIMIT = 126  # registers beyond which smaller groups are tried
REGISTER = 4  # bytes


def order(kernel: Kernel) -> Kernel:
    """Reorder the values and stores of all cells to reduce the number of registers."""

    def change(statement: ir.Statement) -> ir.Body:
        inner = {name: _ordered(kernel, body) for name, body in ir.bodies(statement)}
        return (replace(statement, **inner) if inner else statement,)

    return replace(kernel, body=ir.rewritten(kernel.body, change))


def live_registers(kernel: Kernel, numbers: Sequence[int], ends: Collection[int]) -> int:
    """Return the maximum number of live registers in this order; the values in `ends` are live to the end."""
    last = dict.fromkeys(ends, len(numbers))
    for place in reversed(range(len(numbers))):
        for arg in kernel.values[numbers[place]].args:
            last.setdefault(arg, place)
    released = [0] * (len(numbers) + 1)
    for number in numbers:
        released[last.get(number, 0)] += registers(kernel, number)
    live = max_live = 0
    for place, number in enumerate(numbers):
        live += registers(kernel, number)
        max_live = max(max_live, live)
        live -= released[place]
    return max_live


def registers(kernel: Kernel, number: int) -> int:
    """Return the number of registers of a value; 0 for a constant, which is part of an instruction."""
    value = kernel.values[number]
    return 0 if value.op == "const" else ITEMSIZE[value.dtype] // REGISTER


def _ordered(kernel: Kernel, body: ir.Body) -> ir.Body:
    """Return a body in which each `Let` and the stores after it have a better order of values and stores.

    If no better order exists, the order of this `Let` and of these stores is unchanged.
    """
    result: ir.Body = ()
    n = 0
    while n < len(body):
        statement, n = body[n], n + 1
        if not isinstance(statement, ir.Let):
            result += (statement,)
            continue
        stores = tuple(
            s for s in takewhile(lambda s: isinstance(s, ir.STORES), body[n:]) if isinstance(s, ir.STORES)
        )
        n += len(stores)
        later = _outside_values(kernel, body[n:])
        before = live_registers(kernel, statement.values, later | set(ir.roots(stores)))
        if before > REORDER_LIMIT:
            steps = _steps_of_fewest_registers(kernel, statement.values, stores, later)
            if steps.max_live < before:
                result += steps.body
                continue
        result += (statement, *stores)
    return result


def _steps_of_fewest_registers(
    kernel: Kernel, numbers: Sequence[int], stores: Sequence[ir.Store | ir.StoreCells], later: Collection[int]
) -> Steps:
    """Return the steps with the largest groups that need at most `REGISTER_LIMIT` registers.

    If no size of groups satisfies this limit, return the steps that need the fewest registers.
    """
    candidates = []
    for max_values in GROUP_SIZES:
        candidates.append(Steps(kernel, numbers, stores, later, max_values))
        if candidates[-1].max_live <= REGISTER_LIMIT:
            return candidates[-1]
    return min(candidates, key=lambda steps: steps.max_live)


def _outside_values(kernel: Kernel, body: ir.Body) -> set[int]:
    """Return the values that a body uses from outside, and possibly some that it computes."""
    numbers = set(ir.roots(body))
    for statement in ir.flat(body):
        if isinstance(statement, (ir.Let, ir.Branch)):
            numbers.update(arg for number in statement.values for arg in kernel.values[number].args)
        if isinstance(statement, ir.Branch):
            numbers.add(statement.condition)
    return numbers


class Steps:
    """Groups of values, and stores, in a greedy order: each step leaves the fewest live registers.

    Parameters
    ----------
    kernel : Kernel
    numbers : sequence of int
    stores : sequence of Store
    later : collection of int
        Values that later statements use.
    max_values : int
        Maximum number of values in a group.

    Attributes
    ----------
    body : Body
    max_live : int
        Maximum number of live registers.
    """

    def __init__(
        self,
        kernel: Kernel,
        numbers: Sequence[int],
        stores: Sequence[ir.Store | ir.StoreCells],
        later: Collection[int],
        max_values: int = GROUP_SIZES[0],
    ) -> None:
        self.kernel, self.later = kernel, later
        values, computed = kernel.values, set(numbers)
        users: dict[int, int] = {}
        for number in [*(a for n in numbers for a in set(values[n].args)), *ir.roots(stores)]:
            users[number] = users.get(number, 0) + 1
        # leaves have no arguments in `numbers`; the first group that uses a leaf also computes it
        self.leaves = {n for n in numbers if not computed.intersection(values[n].args)}
        groups: dict[int, list[int]] = {}
        for number in numbers:
            if number in self.leaves:
                continue
            group = [number]
            for arg in dict.fromkeys(values[number].args):
                is_single_use = users.get(arg) == 1 and arg not in later
                if arg in groups and is_single_use and len(group) + len(groups[arg]) <= max_values:
                    group = groups.pop(arg) + group
            groups[number] = group
        self.steps: list[list[int] | ir.Store | ir.StoreCells] = [*groups.values(), *stores]
        self._link(computed)
        self.body, self.max_live = self._order()

    def _link(self, computed: set[int]) -> None:
        """Record the values that each step uses, and the steps that use each value."""
        values = self.kernel.values
        self.inputs: list[set[int]] = []
        self.users: dict[int, list[int]] = {}
        self.loads: dict[str, set[int]] = {}  # loads of each array
        for number in self.leaves:
            if values[number].op == "load":
                self.loads.setdefault(values[number].attribute[0], set()).add(number)
        reads: dict[str, list[int]] = {}
        for n, step in enumerate(self.steps):
            if isinstance(step, ir.STORES):
                inputs = {*ir.roots((step,))} & computed
            else:
                arguments = {arg for number in step for arg in values[number].args}
                inputs = (arguments & computed) - set(step)
            self.inputs.append(inputs)
            for number in inputs:
                self.users.setdefault(number, []).append(n)
                if values[number].op == "load" and isinstance(step, list):
                    reads.setdefault(values[number].attribute[0], []).append(n)
        # A store waits for the values that are computed from the old values of its array. The store does not
        # wait for other stores or later uses, since two stores could wait for each other. Instead, a store
        # follows the loads that other stores or later uses need.
        self.dependents: dict[int, list[int]] = {}
        self.open_inputs = [len(inputs - self.leaves) for inputs in self.inputs]
        for n, step in enumerate(self.steps):
            for reader in reads.get(step.array, ()) if isinstance(step, ir.STORES) else ():
                self.dependents.setdefault(reader, []).append(n)
                self.open_inputs[n] += 1

    def _order(self) -> tuple[ir.Body, int]:
        kernel, remaining_uses = self.kernel, {number: len(steps) for number, steps in self.users.items()}
        done: set[int] = set()
        live = max_live = 0
        costs: dict[int, tuple[int, int]] = {}
        heap: list[tuple[int, int]] = []

        def put(n: int) -> None:
            """Push a ready step onto the heap, with the change in the number of live registers."""
            step, change = self.steps[n], 0
            if isinstance(step, list) and (step[-1] in remaining_uses or step[-1] in self.later):
                change = registers(kernel, step[-1])
            for number in self.inputs[n]:
                last = remaining_uses[number] == 1 and number not in self.later
                change += registers(kernel, number) * ((number not in done) - last)
            costs[n] = (change, n)
            heappush(heap, costs[n])

        for n, count in enumerate(self.open_inputs):
            if not count:
                put(n)
        body: list[ir.Statement] = []
        run: list[int] = []
        while heap:
            cost = heappop(heap)
            n = cost[-1]
            if costs.get(n) != cost:
                continue
            del costs[n]
            step = self.steps[n]
            new_leaves = self.inputs[n] & self.leaves
            if isinstance(step, ir.STORES):
                new_leaves |= self.loads.get(step.array, set())
            new_leaves -= done
            run += sorted(new_leaves)
            live += sum(registers(kernel, number) for number in new_leaves)
            for number in self.inputs[n]:
                remaining_uses[number] -= 1
            changed: dict[int, None] = {}  # steps whose cost changes
            for number in self.inputs[n] | new_leaves:
                if number in new_leaves or remaining_uses[number] == 1:
                    changed |= dict.fromkeys(self.users.get(number, ()))
            done.update(new_leaves)
            if isinstance(step, ir.STORES):
                body += [ir.Let(tuple(run)), step] if run else [step]
                run = []
            else:
                run += step
                done.add(step[-1])
                live += registers(kernel, step[-1])
            max_live = max(max_live, live)
            released = {
                number for number in self.inputs[n] if not remaining_uses[number] and number not in self.later
            }
            live -= sum(registers(kernel, number) for number in released)
            ready = [] if isinstance(step, ir.STORES) else self.users.get(step[-1], [])
            for waiter in (*ready, *self.dependents.get(n, ())):
                self.open_inputs[waiter] -= 1
                if not self.open_inputs[waiter]:
                    put(waiter)
            for other in changed:
                if other in costs:
                    put(other)
        assert not any(self.open_inputs), "steps that wait for each other"
        run += sorted(self.leaves - done)  # leaves that only later statements use
        body += [ir.Let(tuple(run))] if run else []
        return tuple(body), max_live
