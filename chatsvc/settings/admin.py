"""How the admin looks: colours of `tokens.css`, the sidebar, the entry page."""

from __future__ import annotations

from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.translation import gettext_lazy as _


def _page(title: Any, icon: str, name: str, *, superusers: bool = False) -> dict[str, Any]:
    permission = "apps.accounts.staff.is_superuser" if superusers else "apps.accounts.staff.is_staff"
    return {"title": title, "icon": icon, "link": reverse_lazy(name), "permission": permission}


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "chatsvc",
    "SITE_HEADER": "chatsvc",
    "SITE_SUBHEADER": _("Customer service"),
    "SITE_SYMBOL": "forum",
    "SITE_URL": "/dashboard/",
    "SHOW_LANGUAGES": True,
    "SHOW_VIEW_ON_SITE": True,
    "BORDER_RADIUS": "6px",
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda request: static("css/dashboard-mark.svg"),
        }
    ],
    "STYLES": [lambda request: static("css/admin.css")],
    "LOGIN": {"form": "apps.accounts.login.AdminLogin"},
    "DASHBOARD_CALLBACK": "chatsvc.admin_index.fill",
    # The accent #2f5bea at 600 and its neighbours; greys of the same ramp as the dashboard.
    "COLORS": {
        "base": {
            "50": "#f7f8f9", "100": "#f0f1f3", "200": "#e4e6ea", "300": "#d2d5db", "400": "#a5aab4",
            "500": "#767c88", "600": "#595f6b", "700": "#383d47", "800": "#24282f", "900": "#16191f", "950": "#0e1014",
        },
        "primary": {
            "50": "#eef2fe", "100": "#dde5fd", "200": "#c0cefb", "300": "#97aef7", "400": "#6d8cf2",
            "500": "#4a70ee", "600": "#2f5bea", "700": "#2449c4", "800": "#203f9f", "900": "#1f387d", "950": "#15234c",
        },
    },
    "SIDEBAR": {
        "show_search": False,
        "show_all_applications": False,
        "navigation": [
            {
                "items": [
                    _page(_("Overview"), "monitoring", "admin:index"),
                    {"title": _("Agent dashboard"), "icon": "support_agent", "link": "/dashboard/"},
                ],
            },
            {
                "title": _("Conversations"),
                "separator": True,
                "items": [
                    _page(_("Conversations"), "forum", "admin:conversations_conversation_changelist"),
                    _page(_("Messages"), "chat_bubble", "admin:conversations_message_changelist"),
                    _page(_("Customers"), "person", "admin:customers_customer_changelist"),
                    _page(_("Turns"), "timeline", "admin:turns_turn_changelist"),
                ],
            },
            {
                "title": _("Assistant"),
                "separator": True,
                "items": [
                    _page(_("Articles"), "menu_book", "admin:knowledge_article_changelist"),
                    _page(_("Rules"), "rule", "admin:rulebook_rule_changelist"),
                    _page(_("Model endpoints"), "hub", "admin:llm_modelendpoint_changelist"),
                    _page(_("Daily spend"), "payments", "admin:llm_dailyspend_changelist"),
                ],
            },
            {
                "title": _("Workspace"),
                "separator": True,
                "items": [
                    _page(_("Workspaces"), "domain", "admin:accounts_workspace_changelist"),
                    _page(_("Sites"), "language", "admin:accounts_site_changelist"),
                    _page(_("Agents"), "badge", "admin:accounts_agent_changelist"),
                    _page(_("Teams"), "groups", "admin:accounts_team_changelist"),
                    _page(_("Shops"), "storefront", "admin:customers_profilesource_changelist"),
                ],
            },
            {
                "title": _("System"),
                "separator": True,
                "items": [
                    _page(_("Outbox"), "outbox", "admin:conversations_outboxitem_changelist", superusers=True),
                    _page(_("Users"), "lock_person", "admin:auth_user_changelist", superusers=True),
                ],
            },
        ],
    },
}  # fmt: skip
