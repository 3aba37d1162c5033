"""Network addresses as limits count them. Pure."""

from __future__ import annotations

import ipaddress


def neighbourhood(address: str) -> str:
    """What one customer of a provider has: an IPv4 address, or a /64 of IPv6, in which each may take any address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address) or parsed.ipv4_mapped:
        return str(parsed if isinstance(parsed, ipaddress.IPv4Address) else parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(parsed), 64), strict=False).network_address)


def public_neighbourhood(address: str) -> str:
    """The same of an address on the internet; "" of any other, which may be that of a proxy for everybody."""
    here = neighbourhood(address)
    try:
        return here if ipaddress.ip_address(here).is_global else ""
    except ValueError:
        return ""
