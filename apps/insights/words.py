"""What the stages and marks of a turn are called on the admin's pages. The dashboard has them in its own catalogs."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

STAGE_NAMES = {
    "dns": "DNS", "tcp": "TCP", "tls": "TLS", "gateway": _("Gateway"), "receive": _("Question stored"),
    "auth": _("Who asks"), "rules": _("Rules"), "profile": _("Customer data"), "retrieval": _("Articles"),
    "cache": _("Answer cache"), "context": _("Prompt"), "queue": _("Wait for a slot"), "first_token": _("First token"),
    "first_frame": _("First frame"), "painted": _("On the customer's screen"), "last_token": _("Last token"),
}  # fmt: skip
MARK_NAMES = STAGE_NAMES | {
    "cache_off": _("Not cached because"), "drafts": _("Drafts searched"),
    "draft_saved_ms": _("Saved by the draft, ms"), "draft_wasted_ms": _("Wasted on drafts, ms"),
    "speculation": _("Answer begun while typing"), "speculation_saved_ms": _("Saved by that, ms"),
    "asked_early_ms": _("Asked while being stored, ms"), "rules_failed": _("Rules that failed"), "tags": _("Tags"),
}  # fmt: skip
MARK_VALUES = {
    "warm": _("warm"), "cold": _("cold"), "none": _("none"), "unavailable": _("unavailable"),
    "late": _("too late, left out"), "off": _("off"), "draft": _("while typing"), "used": _("used"),
    "miss": _("new question"), "exact": _("same words"), "prefix": _("same beginning"), "similar": _("same meaning"),
    "idle": _("cache is resting"), "rules": _("a rule applies"), "facts": _("asks about an order"),
    "form": _("not a plain question"), "personal": _("personal"), "passing": _("true for now only"),
    "context": _("depends on what was said"),
}  # fmt: skip
# Their values are names that people gave.
_NAMED = {"rules", "rules_failed", "tags"}


def stage_in_words(name: str) -> str:
    """As it stands where it has no words."""
    return str(STAGE_NAMES.get(name, name))


def mark_in_words(name: str, value: str) -> tuple[str, str]:
    """The same of a mark and what it says."""
    return str(MARK_NAMES.get(name, name)), value if name in _NAMED else str(MARK_VALUES.get(value, value))
