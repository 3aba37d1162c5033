"""What a browser may load and call on our pages, and who may frame them."""

from __future__ import annotations

from django.http import HttpRequest

SELF = "'self'"
NOBODY = "'none'"


def content_security_policy(
    request: HttpRequest, *, images: str = SELF, forms: str = NOBODY, framed_by: str = NOBODY
) -> str:
    """Nothing but this origin, no inline code. The keywords are source lists where a page needs more."""
    rules = {
        "default-src": NOBODY,
        "script-src": SELF,
        "style-src": SELF,
        "img-src": images,
        "font-src": SELF,
        # The socket is named besides 'self', which covers it only since CSP level 3 (Safari 15.4).
        "connect-src": f"{SELF} {'wss' if request.is_secure() else 'ws'}://{request.get_host()}",
        "base-uri": NOBODY,
        "form-action": forms,
        "frame-ancestors": framed_by,
    }
    return "; ".join(f"{name} {sources}" for name, sources in rules.items())
