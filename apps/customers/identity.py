"""Who is asking: visitor tokens of our own, and the short-lived tokens a site signs for its known customers.

No frame names a customer; this module turns what the customer presents into one.
See docs/decisions/0003-identity.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

import jwt
import msgspec
from django.core.exceptions import ValidationError
from django.core.signing import BadSignature, SignatureExpired, TimestampSigner
from django.core.validators import validate_email

from apps.accounts.models import Site
from apps.accounts.sites import find_site, secret_print
from apps.customers.models import Customer
from apps.stores.ids import new_id

VISITOR_LIFETIME: Final = timedelta(days=30)
IDENTITY_LIFETIME: Final = timedelta(hours=1)
CLOCK_LEEWAY_S: Final = 10
TOKEN_LIMIT: Final = 4_096
SUBJECT_LIMIT: Final = 128
_ALGORITHM: Final = "HS256"

_signer = TimestampSigner(salt="chatsvc.visitor")


class TokenFault(StrEnum):
    """Told to the client in the refusal of its hello."""

    EXPIRED = "expired"
    INVALID = "invalid"
    FOREIGN = "foreign"  # signed for another site


class BadToken(Exception):
    """The presented token opens nothing; `fault` says why, in a word that is safe to show."""

    def __init__(self, fault: TokenFault) -> None:
        super().__init__(fault.value)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Vouched:
    """Whose word let the asker in: the site, and for a known customer the secret that signed, as of a version."""

    site_id: str
    secret_print: str  # "" for a visitor, whom no secret of the site signed
    settings_version: int


@dataclass(frozen=True, slots=True)
class Identified:
    """The asker, as far as every later step needs to know. `expires_at` is when to present a token again."""

    site_id: str
    workspace_id: str
    customer_id: str
    name: str
    verified: bool
    expires_at: datetime
    vouched: Vouched
    origins: tuple[str, ...]  # of the pages that may speak for customers of the site


@dataclass(frozen=True, slots=True)
class _Visitor:
    site_id: str
    customer_id: str
    expires_at: datetime


class _VisitorClaims(msgspec.Struct, frozen=True):
    site: str = msgspec.field(name="s")
    customer: str = msgspec.field(name="c")


class _Claims(msgspec.Struct, frozen=True):
    """What a site may say of its customer. Other claims are ignored."""

    iss: str
    sub: str
    exp: int | float
    name: str = ""
    email: str = ""


def issue_visitor_token(site_id: str, token: str | None = None) -> tuple[str, str]:
    """A token good for 30 days and the customer id it names: the same visitor while `token` is still good.

    Touches no table: the visitor becomes a row when a socket presents the token.
    """
    customer_id = kept_visitor(site_id, token) or new_id()
    return _signer.sign_object({"s": site_id, "c": customer_id}), customer_id


def kept_visitor(site_id: str, token: str | None) -> str | None:
    """The site's visitor whom a token still speaks for; None where it speaks for nobody."""
    if not token:
        return None
    try:
        visitor = _read_visitor(token)
    except BadToken:
        return None
    return visitor.customer_id if visitor.site_id == site_id else None


def visitor_token_expiry(token: str) -> datetime:
    """When the token must be renewed. Raises `BadToken`."""
    return _read_visitor(token).expires_at


def identify(token: str, identity: str) -> Identified:
    """The customer behind a visitor token, or the verified one behind a site's `identity`. 2 to 4 queries.

    An identity wins over the visitor token and never merges the visitor's conversations into the customer's:
    whoever logs in on a shared machine must not inherit what others asked there. Raises `BadToken`.
    """
    if not identity:
        return _identify_visitor(_read_visitor(token))
    site, claims = _read_identity(identity)
    if token and _foreign(token, site.pk):
        raise BadToken(TokenFault.FOREIGN)
    return _identify_known(site, claims)


def _read_visitor(token: str) -> _Visitor:
    if not token or len(token) > TOKEN_LIMIT:
        raise BadToken(TokenFault.INVALID)
    try:
        claims = msgspec.convert(_signer.unsign_object(token, max_age=VISITOR_LIFETIME), _VisitorClaims)
    except SignatureExpired as error:
        raise BadToken(TokenFault.EXPIRED) from error
    except (BadSignature, msgspec.ValidationError, ValueError) as error:
        raise BadToken(TokenFault.INVALID) from error
    return _Visitor(claims.site, claims.customer, _signed_at(token) + VISITOR_LIFETIME)


def _signed_at(token: str) -> datetime:
    # TimestampSigner has just verified it: value:timestamp:signature, the time in base 62 seconds.
    seconds = 0
    for character in token.rsplit(":", 2)[1]:
        seconds = seconds * 62 + _BASE62.index(character)
    return datetime.fromtimestamp(seconds, UTC)


_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _foreign(token: str, site_id: str) -> bool:
    try:
        return _read_visitor(token).site_id != site_id
    except BadToken:
        return False  # a stale visitor token takes nothing away from a good identity


def _identify_visitor(visitor: _Visitor) -> Identified:
    site = find_site(visitor.site_id)
    if site is None:
        raise BadToken(TokenFault.INVALID)
    customer, _ = Customer.objects.get_or_create(pk=visitor.customer_id, defaults={"site": site})
    if customer.site_id != site.pk or customer.verified:
        raise BadToken(TokenFault.FOREIGN)
    return _identified(site, customer, visitor.expires_at)


def _read_identity(identity: str) -> tuple[Site, _Claims]:
    if len(identity) > TOKEN_LIMIT:
        raise BadToken(TokenFault.INVALID)
    site = _named_site(identity)
    try:
        read = jwt.decode(
            identity,
            site.identity_secret,
            algorithms=[_ALGORITHM],
            issuer=site.pk,
            leeway=CLOCK_LEEWAY_S,
            options={"require": ["exp", "iss", "sub"], "verify_aud": False},
        )
        claims = msgspec.convert(read, _Claims)
    except jwt.ExpiredSignatureError as error:
        raise BadToken(TokenFault.EXPIRED) from error
    except (jwt.PyJWTError, msgspec.ValidationError, ValueError, OverflowError) as error:
        raise BadToken(TokenFault.INVALID) from error
    _check_claims(claims)
    return site, claims


def _named_site(identity: str) -> Site:
    """The site the token claims to come from: only a hint of whose secret must have signed it."""
    try:
        issuer = jwt.decode(identity, options={"verify_signature": False}).get("iss")
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise BadToken(TokenFault.INVALID) from error
    site = find_site(issuer) if isinstance(issuer, str) else None
    # An empty secret (no key opens it any more) would accept anyone's signature.
    if site is None or not site.identity_secret:
        raise BadToken(TokenFault.INVALID)
    return site


def _check_claims(claims: _Claims) -> None:
    latest = datetime.now(UTC) + IDENTITY_LIFETIME + timedelta(seconds=CLOCK_LEEWAY_S)
    subject_fits = 0 < len(claims.sub) <= SUBJECT_LIMIT and claims.sub == claims.sub.strip()
    # Dots alone would walk up the path of the shop's API.
    subject_fits = subject_fits and claims.sub not in (".", "..")
    texts_fit = all(_storable(text) for text in (claims.sub, claims.name, claims.email))
    if claims.exp > latest.timestamp() or not subject_fits or not texts_fit:
        raise BadToken(TokenFault.INVALID)


def _storable(text: str) -> bool:
    """No control characters (PostgreSQL stores no NUL) and no lone surrogates."""
    return text.isprintable() and not any("\ud800" <= character <= "\udfff" for character in text)


def _identify_known(site: Site, claims: _Claims) -> Identified:
    # The unique constraint on (site, external_id) decides between two first visits at once.
    customer, _ = Customer.objects.get_or_create(site=site, external_id=claims.sub, defaults=_told(claims))
    changed = {field: value for field, value in _told(claims).items() if getattr(customer, field) != value}
    if changed:
        Customer.objects.filter(pk=customer.pk).update(**changed)
    customer.name = changed.get("name", customer.name)
    return _identified(site, customer, datetime.fromtimestamp(claims.exp + CLOCK_LEEWAY_S, UTC))


def _told(claims: _Claims) -> dict[str, str]:
    """Name and address where the token gives them; an absent or malformed one keeps what is stored."""
    told = {"name": claims.name.strip()[:120], "email": _address(claims.email)}
    return {field: value for field, value in told.items() if value}


def _address(email: str) -> str:
    try:
        validate_email(email)
    except ValidationError:
        return ""
    return email[:254]


def _identified(site: Site, customer: Customer, expires_at: datetime) -> Identified:
    return Identified(
        site_id=site.pk,
        workspace_id=site.workspace_id,
        customer_id=customer.pk,
        name=customer.name,
        verified=customer.verified,
        expires_at=expires_at,
        vouched=Vouched(
            site_id=site.pk,
            secret_print=secret_print(site.identity_secret) if customer.verified else "",
            settings_version=site.settings_version,
        ),
        origins=tuple(site.allowed_origins),
    )
