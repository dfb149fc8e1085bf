"""Which network addresses a webhook may be sent to, and those where a host leads. No settings."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, NamedTuple, ParamSpec, TypeVar

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

# IANA's special-purpose registries. A table of our own, because `is_global` differs between
# Python releases and calls some relays global (NAT64, 6to4, site-local).
_NOT_PUBLIC: tuple[IPNetwork, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local: cloud metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
        # Parts of _GLOBAL_UNICAST that are not for hosts.
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: carries any IPv4 address
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
# IANA has allocated no other IPv6 addresses as global unicast.
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")


def is_public(address: Address) -> bool:
    """Return True if an address belongs to a host on the public internet."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address not in _GLOBAL_UNICAST:
            return False
    return not any(address in network for network in _NOT_PUBLIC)


class BlockedAddressError(OSError):
    """The host leads to an address that no webhook may be sent to."""


class AllowedNetworks(NamedTuple):
    """The addresses that a request may go to: public ones and those of `networks`.

    `nothing` overrides the rest: no address is allowed.
    """

    loopback: bool = False
    networks: tuple[IPNetwork, ...] = ()
    nothing: bool = False

    def allows(self, text: str) -> bool:
        """Return True if a literal address, as a socket has it, may be connected to."""
        if self.nothing:
            return False
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        if address.is_loopback and self.loopback:
            return True
        return is_public(address) or any(
            address in network for network in self.networks
        )

    def allows_all(self, texts: Iterable[str]) -> bool:
        return all(self.allows(text) for text in texts)


MAX_THREADS = 512
REMEMBER_FOR_S = 10.0

# As getaddrinfo has it: family, type, protocol, canonical name, (address, port).
AddressInfo = tuple[socket.AddressFamily, int, int, str, tuple[str, int]]
_Question = tuple[str, int]

P = ParamSpec("P")
T = TypeVar("T")


class ThreadPerTask(Executor):
    """Runs each call in a new thread, `most` at once; any more fail at once.

    getaddrinfo cannot be interrupted, so names that hang would fill a pool. A call that waited for
    them would time out through no fault of its own. Unlike a pool's threads, these are daemons.
    """

    def __init__(self, most: int = MAX_THREADS) -> None:
        self._free = threading.Semaphore(most)

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        future: Future[T] = Future()
        if not self._start(future, partial(fn, *args, **kwargs)):
            # The error of getaddrinfo when a local resource is missing.
            future.set_exception(socket.gaierror(socket.EAI_MEMORY, "no thread"))
        return future

    def _start(self, *call: Any) -> bool:
        if not self._free.acquire(blocking=False):
            return False
        try:
            threading.Thread(target=self._work, args=call, daemon=True).start()
        except RuntimeError:
            self._free.release()
            return False
        return True

    def _work(self, future: Future[Any], call: Callable[[], Any]) -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(call())
            except BaseException as error:  # the future's owner handles it
                future.set_exception(error)
        self._free.release()


THREADS = ThreadPerTask()


class GuardedResolver:
    """Resolves names; refuses a name if any of its addresses is not allowed.

    A name whose servers hang occupies one thread, however often it is asked for.
    """

    def __init__(self, networks: AllowedNetworks) -> None:
        self._networks = networks
        self._open: dict[_Question, asyncio.Future[list[Any]]] = {}
        # Of allowed names, with the time of the loop's clock at which they are forgotten.
        self._known: dict[_Question, tuple[float, Sequence[AddressInfo]]] = {}

    async def resolve(self, host: str, port: int) -> Sequence[AddressInfo]:
        """Return the addresses of a host. Raises BlockedAddressError or socket.gaierror."""
        if literal := _literal(host, port):
            return [literal]
        now = asyncio.get_running_loop().time()
        until, infos = self._known.get((host, port), (0.0, ()))
        if until <= now:
            infos = await self._ask_for((host, port))
            self._known[host, port] = now + REMEMBER_FOR_S, infos
        return infos

    async def _ask_for(self, question: _Question) -> Sequence[AddressInfo]:
        rows = await asyncio.shield(self._ask(question))
        addresses = addresses_of(rows)
        if not self._networks.allows_all(addresses):
            raise BlockedAddressError
        return [
            (family, socket.SOCK_STREAM, protocol, "", (address, question[1]))
            for address, (family, _, protocol, *_) in zip(addresses, rows, strict=True)
        ]

    def _ask(self, question: _Question) -> asyncio.Future[list[Any]]:
        if question not in self._open:
            ask = partial(
                socket.getaddrinfo,
                *question,
                type=socket.SOCK_STREAM,
                family=socket.AF_UNSPEC,
                flags=socket.AI_ADDRCONFIG,
            )
            # Not the loop's own getaddrinfo: uvloop has four threads for all names.
            future = asyncio.get_running_loop().run_in_executor(THREADS, ask)
            future.add_done_callback(partial(self._end, question))
            self._open[question] = future
        return self._open[question]

    def _end(self, question: _Question, future: asyncio.Future[list[Any]]) -> None:
        del self._open[question]
        if not future.cancelled():
            future.exception()  # retrieved, also if no task awaits it any longer

    def forget(self, now: float) -> bool:
        """Forget what is out of date at a time of the loop's clock; return True if any is left."""
        self._known = {
            question: known for question, known in self._known.items() if known[0] > now
        }
        return bool(self._known)

    def close(self) -> None:
        for future in list(self._open.values()):
            future.cancel()


def addresses_of(rows: Iterable[Any]) -> list[str]:
    """Return the addresses in the rows of getaddrinfo, without their zones."""
    return [str(address[0]).partition("%")[0] for *_, address in rows]


def _literal(host: str, port: int) -> AddressInfo | None:
    """Return the address that a host is, in the standard notation; None for a name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port))


def guarded_socket(networks: AllowedNetworks, address_info: Any) -> socket.socket:
    """Open a socket for an allowed address; every connection is made with one.

    This check is the decisive one: literal addresses and later resolutions pass here too.
    """
    check_address(networks, address_info)
    return socket.socket(*address_info[:3])


def check_address(networks: AllowedNetworks, address_info: Any) -> None:
    """Raise BlockedAddressError for an address that is not allowed."""
    if not networks.allows_all(addresses_of([address_info])):
        raise BlockedAddressError
