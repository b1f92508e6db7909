"""A SuperLink for the user who starts it, and for as long as its parent lives.

Flower asks nobody who sends a run to a SuperLink for a name, and runs its code: on a machine with
several users each of them could have theirs run as the one who has started it. Here a connection is
used only if its other end belongs to the same user of this machine, which Linux tells; elsewhere
all are.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from uvicorn import config
from uvicorn.protocols.http.auto import AutoHTTPProtocol

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LOCAL, REMOTE, USER = 1, 2, 7  # columns
GRACE = 4.0  # seconds for an orderly end


class OwnUserOnly(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Uvicorn's protocol, which closes connections of others before anything is read."""

    def connection_made(self, transport: Any) -> None:
        """Look whose connection it is, once."""
        ends = (transport.get_extra_info(name) for name in ("peername", "sockname"))
        if owner(*(end[:2] for end in ends)) == os.getuid():
            super().connection_made(transport)
        else:
            transport.set_protocol(asyncio.Protocol())
            transport.abort()


def owner(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """Return the user whose end of a connection this is, if it is on this machine."""
    wanted = [_as_listed(client), _as_listed(server)]
    for table in TABLES:
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            columns = line.split()
            if [columns[LOCAL], columns[REMOTE]] == wanted:
                return int(columns[USER])
    return None


def _as_listed(end: tuple[str, int]) -> str:
    """Write an address as Linux lists it: words of 32 bits in the machine's order of bytes."""
    packed = ipaddress.ip_address(end[0]).packed
    words = [packed[k : k + 4] for k in range(0, len(packed), 4)]
    turned = [word[::-1] if sys.byteorder == "little" else word for word in words]
    return f"{b''.join(turned).hex().upper()}:{end[1]:04X}"


def _end_with_parent() -> None:
    sys.stdin.buffer.read()  # until the other end is closed, which a killed parent does, too
    threading.Timer(GRACE, os._exit, [1]).start()
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Start a SuperLink by Flower's own options."""
    from flwr.superlink.cli import flower_superlink

    if TABLES[0].exists():
        config.HTTP_PROTOCOLS["auto"] = f"{OwnUserOnly.__module__}:{OwnUserOnly.__name__}"
    threading.Thread(target=_end_with_parent, daemon=True).start()
    flower_superlink()


if __name__ == "__main__":
    from sourcewise.engines.flower import own_superlink  # under the name that uvicorn finds it by

    own_superlink.main()
