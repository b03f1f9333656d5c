"""The order of the values of a cell: that few of them wait for their use at a time.

A thread of a device has 255 registers at most. In the order in which results need them values wait all over a
large right-hand side: a gradient that the first equation takes stays until the last one has taken it too. So
what uses values up goes first, and results are stored as soon as they are there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import takewhile

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel
from halocline.lang.dtype import ITEMSIZE

AT_ONCE = 96  # registers for values, from which their order matters
TOGETHER = (4, 2, 1)  # values that are computed one after the other; measured: docs/performance.md
MANY = 126  # registers beyond which smaller groups are tried
REGISTER = 4  # bytes


def order(kernel: Kernel) -> Kernel:
    """All cells with their values and stores in an order that needs few registers."""

    def change(statement: ir.Statement) -> ir.Body:
        inner = {name: _ordered(kernel, body) for name, body in ir.bodies(statement)}
        return (replace(statement, **inner) if inner else statement,)

    return replace(kernel, body=ir.rewritten(kernel.body, change))


def waiting(kernel: Kernel, numbers: Sequence[int], ends: Collection[int]) -> int:
    """The most registers that values take at a time in this order; `ends` are used after all of them."""
    last = dict.fromkeys(ends, len(numbers))
    for place in reversed(range(len(numbers))):
        for arg in kernel.values[numbers[place]].args:
            last.setdefault(arg, place)
    over = [0] * (len(numbers) + 1)
    for number in numbers:
        over[last.get(number, 0)] += registers(kernel, number)
    taken = most = 0
    for place, number in enumerate(numbers):
        taken += registers(kernel, number)
        most = max(most, taken)
        taken -= over[place]
    return most


def registers(kernel: Kernel, number: int) -> int:
    """How many a value takes; numbers are part of instructions."""
    value = kernel.values[number]
    return 0 if value.op == "const" else ITEMSIZE[value.dtype] // REGISTER


def _ordered(kernel: Kernel, body: ir.Body) -> ir.Body:
    """A body with the values of each `Let` and the stores behind it in a better order, where there is one."""
    made: ir.Body = ()
    n = 0
    while n < len(body):
        statement, n = body[n], n + 1
        if not isinstance(statement, ir.Let):
            made += (statement,)
            continue
        stores = tuple(
            s for s in takewhile(lambda s: isinstance(s, ir.Store), body[n:]) if isinstance(s, ir.Store)
        )
        n += len(stores)
        later = _taken(kernel, body[n:])
        before = waiting(kernel, statement.values, later | set(ir.roots(stores)))
        if before > AT_ONCE:
            steps = _fewest(kernel, statement.values, stores, later)
            if steps.most < before:
                made += steps.body
                continue
        made += (statement, *stores)
    return made


def _fewest(
    kernel: Kernel, numbers: Sequence[int], stores: Sequence[ir.Store], later: Collection[int]
) -> Steps:
    """The steps of the largest groups that do not take too many registers, or else of those that take the
    fewest."""
    found = []
    for together in TOGETHER:
        found.append(Steps(kernel, numbers, stores, later, together))
        if found[-1].most <= MANY:
            return found[-1]
    return min(found, key=lambda steps: steps.most)


def _taken(kernel: Kernel, body: ir.Body) -> set[int]:
    """The values that a body takes from outside, among others."""
    taken = set(ir.roots(body))
    for statement in ir.flat(body):
        if isinstance(statement, (ir.Let, ir.Branch)):
            taken.update(arg for number in statement.values for arg in kernel.values[number].args)
        if isinstance(statement, ir.Branch):
            taken.add(statement.condition)
    return taken


class Steps:
    """Values in small groups, and stores: each time the one after which the fewest registers are taken.

    Parameters
    ----------
    kernel : Kernel
    numbers : sequence of int
    stores : sequence of Store
    later : collection of int
        Values that are used afterwards.
    together : int
        The most values of a group.

    Attributes
    ----------
    body : Body
    most : int
        The most registers that values take at a time.
    """

    def __init__(
        self,
        kernel: Kernel,
        numbers: Sequence[int],
        stores: Sequence[ir.Store],
        later: Collection[int],
        together: int = TOGETHER[0],
    ) -> None:
        self.kernel, self.later = kernel, later
        values, here = kernel.values, set(numbers)
        users: dict[int, int] = {}
        for number in [*(a for n in numbers for a in set(values[n].args)), *ir.roots(stores)]:
            users[number] = users.get(number, 0) + 1
        # leaves come with the first group that takes them
        self.leaves = {n for n in numbers if not here.intersection(values[n].args)}
        groups: dict[int, list[int]] = {}
        for number in numbers:
            if number in self.leaves:
                continue
            group = [number]
            for arg in dict.fromkeys(values[number].args):
                alone = users.get(arg) == 1 and arg not in later
                if arg in groups and alone and len(group) + len(groups[arg]) <= together:
                    group = groups.pop(arg) + group
            groups[number] = group
        self.steps: list[list[int] | ir.Store] = [*groups.values(), *stores]
        self._link(here)
        self.body, self.most = self._order()

    def _link(self, here: set[int]) -> None:
        """What each step takes, and which steps take each value."""
        values = self.kernel.values
        self.takes: list[set[int]] = []
        self.takers: dict[int, list[int]] = {}
        self.loads: dict[str, set[int]] = {}  # of each array
        for number in self.leaves:
            if values[number].op == "load":
                self.loads.setdefault(values[number].attribute[0], set()).add(number)
        reads: dict[str, list[int]] = {}
        for n, step in enumerate(self.steps):
            if isinstance(step, ir.Store):
                taken = {step.value} & here
            else:
                taken = {arg for number in step for arg in values[number].args if arg in here} - set(step)
            self.takes.append(taken)
            for number in taken:
                self.takers.setdefault(number, []).append(n)
                if values[number].op == "load" and isinstance(step, list):
                    reads.setdefault(values[number].attribute[0], []).append(n)
        # a store waits for what is computed of the old values of its array; what other stores take, or what
        # follows, is loaded before it: two stores could wait for each other
        self.after: dict[int, list[int]] = {}
        self.waits = [len(taken - self.leaves) for taken in self.takes]
        for n, step in enumerate(self.steps):
            for reader in reads.get(step.array, ()) if isinstance(step, ir.Store) else ():
                self.after.setdefault(reader, []).append(n)
                self.waits[n] += 1

    def _order(self) -> tuple[ir.Body, int]:
        kernel, left = self.kernel, {number: len(by) for number, by in self.takers.items()}
        done: set[int] = set()
        taken = most = 0
        costs: dict[int, tuple[int, int]] = {}
        heap: list[tuple[int, int]] = []

        def put(n: int) -> None:
            """A step that can be next, with the registers that are taken after it."""
            step, change = self.steps[n], 0
            if isinstance(step, list) and (step[-1] in left or step[-1] in self.later):
                change = registers(kernel, step[-1])
            for number in self.takes[n]:
                last = left[number] == 1 and number not in self.later
                change += registers(kernel, number) * ((number not in done) - last)
            costs[n] = (change, n)
            heappush(heap, costs[n])

        for n, waits in enumerate(self.waits):
            if not waits:
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
            fresh = self.takes[n] & self.leaves
            if isinstance(step, ir.Store):
                fresh |= self.loads.get(step.array, set())
            fresh -= done
            run += sorted(fresh)
            taken += sum(registers(kernel, number) for number in fresh)
            for number in self.takes[n]:
                left[number] -= 1
            changed: dict[int, None] = {}  # steps whose cost is another one now
            for number in self.takes[n] | fresh:
                if number in fresh or left[number] == 1:
                    changed |= dict.fromkeys(self.takers.get(number, ()))
            done.update(fresh)
            if isinstance(step, ir.Store):
                body += [ir.Let(tuple(run)), step] if run else [step]
                run = []
            else:
                run += step
                done.add(step[-1])
                taken += registers(kernel, step[-1])
            most = max(most, taken)
            over = {number for number in self.takes[n] if not left[number] and number not in self.later}
            taken -= sum(registers(kernel, number) for number in over)
            ready = [] if isinstance(step, ir.Store) else self.takers.get(step[-1], [])
            for waiter in (*ready, *self.after.get(n, ())):
                self.waits[waiter] -= 1
                if not self.waits[waiter]:
                    put(waiter)
            for other in changed:
                if other in costs:
                    put(other)
        assert not any(self.waits), "steps that wait for each other"
        run += sorted(self.leaves - done)  # that are used later alone
        body += [ir.Let(tuple(run))] if run else []
        return tuple(body), most
