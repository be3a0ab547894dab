"""How soon the wall shows three hundred guesses, in a quiet network and in a hostile one."""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from tests.helpers.phones import Phone, Running, all_guess, request, running_room

PHONES = 300
BATCH = 30
HOSTILE = "127.0.0.2"  # an address that no phone has; on Linux all of 127.0.0.0/8 is loopback


async def batches(room: Running, key: str) -> tuple[list[float], float]:
    """Return seconds from each batch's last reply until the wall counts it, and for all batches."""
    # Each phone has an address of its own, because many requests from one address have to wait.
    phones = [Phone(room.phones, home=f"127.1.{n // 200}.{n % 200 + 1}") for n in range(PHONES)]
    lags_s = []
    start = time.perf_counter()
    for first in range(0, PHONES, BATCH):
        await all_guess(phones[first : first + BATCH], ["12"] * BATCH)
        begun = time.perf_counter()
        while await counted(room, key) < first + BATCH:
            await asyncio.sleep(0)
        lags_s.append(time.perf_counter() - begun)
    return lags_s, time.perf_counter() - start


async def counted(room: Running, key: str) -> int:
    """Return how many guesses the wall counts."""
    state = await request(f"{room.wall}state?key={key}")
    return state.said["count"]


async def flood(url: str) -> None:
    """Send requests without a pause, from another address, and never read the replies."""
    host, _, port = urlsplit(url).netloc.partition(":")
    while True:
        _, writer = await asyncio.open_connection(host, port, local_addr=(HOSTILE, 0))
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        writer.close()


def report() -> None:
    """Print how soon the wall counts, without a flood of requests and beside one."""
    for floods in (0, 1):
        with tempfile.TemporaryDirectory() as folder, running_room(Path(folder)) as room:
            command = [sys.executable, "-m", __name__, room.phones]
            hostile = [subprocess.Popen(command) for _ in range(floods)]
            room.post("ask", "k.bench")
            lags_s, took_s = asyncio.run(batches(room, "k.bench"))
            for process in hostile:
                process.kill()
        median_ms = statistics.median(lags_s) * 1e3
        worst_ms = max(lags_s) * 1e3
        print(f"{PHONES} phones guess in {took_s:.2f} s, beside {floods} floods.")
        print(f"The wall counts a batch's last guess {median_ms:.1f} ms after the reply to it,")
        print(f"{worst_ms:.1f} ms at worst.")


if __name__ == "__main__":
    asyncio.run(flood(sys.argv[1]))
