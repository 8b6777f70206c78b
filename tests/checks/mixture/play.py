"""Random mixtures of all that clients can do at once: `python -m tests.checks.mixture.play SECONDS [SEED]`.

Each round has a server of its own. It ends with nothing left of its clients, and each request answered once.
"""

import asyncio
import random
import sys
import time

import anyio

from tests.checks.mixture.players import WAYS, Player
from tests.checks.mixture.world import COUNTED, living, open_world

PLAYERS, STEPS = 8, 25


async def play_round(seed: int) -> list[str]:
    """What was wrong in the round of this seed."""
    chance, before = random.Random(seed), living()
    async with open_world(chance) as world:
        players = [Player(world, random.Random(chance.random()), chance.choice(WAYS)) for _ in range(PLAYERS)]
        async with anyio.create_task_group() as group:
            for player in players:
                group.start_soon(player.play, chance.randint(1, STEPS))
    world.check_lines(nonce for player in players for nonce in player.certain)
    trouble = world.trouble
    del world, players, player, group
    await asyncio.sleep(0)
    after = living()
    names = [one.__name__ for one in COUNTED]
    return trouble + [f"{after[name] - before[name]} {name} are kept" for name in names if after[name] > before[name]]


def play(seconds: float, seed: int = 0) -> dict[int, list[str]]:
    """What was wrong, by the seed of the round, of as many rounds as the time allows, and one at least."""
    found: dict[int, list[str]] = {}
    end = time.monotonic() + seconds
    while True:
        if trouble := asyncio.run(play_round(seed)):
            found[seed] = trouble
        seed += 1
        if time.monotonic() >= end:
            return found


if __name__ == "__main__":
    found = play(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    for seed, trouble in found.items():
        print(f"seed {seed}:", *trouble[:10], sep="\n  ")
    sys.exit(bool(found))
