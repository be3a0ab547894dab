"""How soon the wall knows of three hundred guesses: with a network that is idle, and with one that is hostile."""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.helpers.phones import Phone, Running, all_guess, request, running_room

PHONES, BATCH = 300, 30
HOSTILE = "127.0.0.2"  # another address than the phones', which Linux has on loopback


async def batches(room: Running, key: str) -> tuple[list[float], float]:
    """Seconds from the last answer to a batch until the wall's count has it; and seconds for all."""
    # Each at an address of its own: so many of one would wait their turn.
    phones = [Phone(room.phones, home=f"127.1.{n // 200}.{n % 200 + 1}") for n in range(PHONES)]
    lags, start = [], time.perf_counter()
    for first in range(0, PHONES, BATCH):
        await all_guess(phones[first : first + BATCH], ["12"] * BATCH)
        begun = time.perf_counter()
        while (await request(f"{room.wall}state?key={key}")).said["count"] < first + BATCH:
            await asyncio.sleep(0)
        lags.append(time.perf_counter() - begun)
    return lags, time.perf_counter() - start


async def flood(url: str) -> None:
    """Ask as often as it can, from another address."""
    while True:
        _, writer = await asyncio.open_connection(
            *url.split("/")[2].split(":"), local_addr=(HOSTILE, 0)
        )
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        writer.close()


def report() -> None:
    for floods in (0, 1):
        with tempfile.TemporaryDirectory() as folder, running_room(Path(folder)) as room:
            hostile = [
                subprocess.Popen([sys.executable, "-m", __name__, room.phones])
                for _ in range(floods)
            ]
            room.post("ask", "k.bench")
            lags, took = asyncio.run(batches(room, "k.bench"))
            for one in hostile:
                one.kill()
        print(
            f"{PHONES} phones guess in {took:.2f} s, beside {floods} floods. The wall's count has a batch's"
        )
        print(
            f"last {statistics.median(lags) * 1e3:.1f} ms later, at worst {max(lags) * 1e3:.1f} ms."
        )


if __name__ == "__main__":
    asyncio.run(flood(sys.argv[1]))
