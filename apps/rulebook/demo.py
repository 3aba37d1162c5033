"""The rules of the demo shop Lantern."""

from __future__ import annotations

from collections.abc import Mapping

from apps.accounts.models import Site, Team
from apps.rulebook.models import Rule


def load(site: Site, teams: Mapping[str, Team]) -> None:
    """Gives the site the demo's rules; `teams` by name. A rule that exists keeps its edits."""
    for position, (name, fields) in enumerate(_rules(teams).items(), start=1):
        Rule.objects.get_or_create(site=site, name=name, defaults={"position": position * 10, **fields})


def _rules(teams: Mapping[str, Team]) -> dict[str, dict[str, object]]:
    return {
        "Gold customers' refunds": {
            "condition": 'tier == "gold" && (text_lower.contains("refund") || text_lower.contains("退款"))',
            "handoff": True,
            "team": teams["Returns"],
            "tag": "gold-refund",
            "reply_en": "I'm bringing in a colleague from our returns team, who will look after your refund in person.",
            "reply_zh": "我请退货组的同事来亲自为您处理退款，请稍等。",
        },
        "Battery danger": {
            "condition": (
                '(text_lower.contains("battery") || text_lower.contains("电池"))\n'
                '&& text_lower.matches("swollen|swelling|smoke|smoking|burn|on fire|hot|leak|鼓包|冒烟|着火|发烫|漏液")'
            ),
            "tag": "safety",
            "instruction": (
                "Safety first: begin with telling the customer to stop using and charging the lamp and to put it "
                "outdoors, away from anything that burns."
            ),
        },
        "Out of hours": {
            "condition": '!within_hours && (text_lower.contains("human") || text_lower.contains("人工"))',
            "handoff": True,
            "team": teams["Support"],
            "tag": "out-of-hours",
        },
    }
