"""From results/distributed.json to docs/scale.md: what a step of several processes took; a simulation.

The simulation puts a step of n machines together from parts that were measured, each machine with one
thread: its share of a minibatch, by itself; gradients packed and unpacked, and Adam, both as of a group
of one, since they go over the whole minibatch; and a network, which is assumed.
"""

from __future__ import annotations

from typing import Any

GBITS = (1, 10, 25, 100)  # a second, assumed to be used in full
LATENCY_MS = 0.05  # of a message to the next machine: assumed
NOTHING = 1.05  # a speed-up that is none
Results = dict[str, Any]


def table(everything: Results) -> str:
    """As Markdown."""
    steps, more = everything["steps"], everything["steps, 16 CPUs"]
    return "\n".join([*measured(steps), "", *measured(more), "", *simulation(steps)])


def measured(steps: Results) -> list[str]:
    head = [
        "batch of",
        "",
        "a step",
        "its CPU",
        "own share",
        "codes",
        "gradients",
        "Adam",
        "MB sent",
    ]
    head += ["speed-up", "against one by itself"]
    rows = [head, ["---:", "---", *["---:"] * 9]]
    for size in steps["shares"]:
        by_itself = min(one[size]["step"] for one in steps["alone"].values())
        of_one = steps["processes"]["1"][size]["step"]
        named = [
            *((f"by itself, {threads(n)}", one[size]) for n, one in steps["alone"].items()),
            *((processes(n), one[size]) for n, one in steps["processes"].items()),
        ]
        for name, found in named:
            sent = sum(value for part, value in found.items() if "bytes" in part)
            parts = [found.get(part) for part in ("own share", "codes", "gradients", "Adam")]
            rows.append(
                [
                    f"{int(size):,}",
                    name,
                    f"{found['step']:.0f} ms",
                    f"{found['step, CPU']:.0f} ms",
                    *("–" if part is None else f"{part:.1f}" for part in parts),
                    f"{sent / 1e6:.1f}" if sent else "–",
                    *(f"{time / found['step']:.2f}" for time in (of_one, by_itself)),
                ]
            )
    return [
        f"{steps['documents']:,} documents of {steps['corpus']}, {steps['words']:,} words, "
        f"{steps['bits']} bits; {steps['cpus']} CPUs, {steps['cpu']}; load "
        f"{steps['load_average_before']} before and {steps['load_average']} after. All of this ●; "
        "processes of a group have one thread each; parts in ms of the clock; speed-ups by the clock, "
        "against a group of one, and against one process by itself, with one thread or two, whichever "
        f"is faster.{busy(steps)}",
        "",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def busy(steps: Results) -> str:
    if steps["load_average_before"] < steps["cpus"] / 4:
        return ""
    return (
        " **Others wanted these CPUs as well**: by the clock no speed-up can be read from this; CPU "
        "time, which the simulation is made of, says more."
    )


def threads(n: str) -> str:
    return "one thread" if n == "1" else f"{n} threads"


def processes(n: str) -> str:
    return "a group of one process" if n == "1" else f"{n} processes"


def simulation(steps: Results) -> list[str]:
    sizes = list(steps["shares"])
    columns = [(size, gbits) for size in sizes for gbits in GBITS]
    numbers = [int(n) for n in steps["shares"][sizes[0]]]
    found = {
        (n, *column): steps["alone"]["1"][column[0]]["step, CPU"] / simulated(steps, n, *column)
        for n in numbers
        for column in columns
    }
    head = ["machines", *(f"batch {int(size):,}, {gbits} Gbit/s" for size, gbits in columns)]
    rows = [head, ["---:"] * len(head)]
    for n in numbers:
        name = "1, as a group" if n == 1 else str(n)
        rows.append([name, *(f"{found[(n, *column)]:.2f}" for column in columns)])
    alone = ", ".join(
        f"{steps['alone']['1'][size]['step, CPU']:.0f} ms with a batch of {int(size):,}"
        for size in sizes
    )
    return [
        "Simulated ○, how many times as fast as one process by itself with one thread "
        f"({alone}: CPU time):",
        "",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        " ".join(in_words(steps, size, numbers, found) for size in sizes),
    ]


def simulated(steps: Results, n: int, size: str, gbits: int) -> float:
    """Milliseconds of a step of n machines.

    All send at once around a ring, n − 1 messages to fetch something, twice as many to sum something.
    The codes are fetched, then the sizes of what follows, then the parts of the first layer's gradient;
    all other gradients are summed.
    """
    group_of_one = steps["processes"]["1"][size]
    here = group_of_one["gradients, CPU"] + group_of_one["Adam, CPU"]
    codes = 2 * steps["processes"]["2"][size]["codes, bytes fetched"]
    fetched = codes + group_of_one["gradients, bytes fetched"]
    summed = group_of_one["gradients, bytes summed"]
    messages = (n - 1) * (3 + 2)
    sent = (n - 1) / n * (fetched + 2 * summed)
    network = messages * LATENCY_MS + sent / (gbits * 1e9 / 8) * 1000
    return float(steps["shares"][size][str(n)] + here + network)


def in_words(
    steps: Results, size: str, numbers: list[int], found: dict[tuple[int, str, int], float]
) -> str:
    """Where it gains what."""
    bests = []
    for gbits in GBITS:
        best = max(numbers, key=lambda n: found[(n, size, gbits)])
        speed_up = found[(best, size, gbits)]
        most = f"{speed_up:.1f} with {best} machines" if speed_up > NOTHING else "no gain"
        bests.append(f"at {gbits} Gbit/s {most}")
    shares, group_of_one = steps["shares"][size], steps["processes"]["1"][size]
    here = group_of_one["gradients, CPU"] + group_of_one["Adam, CPU"]
    return (
        f"With a batch of {int(size):,} the most is {', '.join(bests)} ○. What does not become less: "
        f"{here:.0f} ms of gradients and Adam, and of the own share {min(shares.values()):.0f} ms of "
        f"{shares['1']:.0f} ●."
    )
