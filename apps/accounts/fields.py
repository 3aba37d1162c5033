"""Form fields of the admin: opening hours as seven rows, lists as lines, secrets that are only written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from django import forms
from django.core.exceptions import ValidationError
from django.forms.renderers import BaseRenderer
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    INPUT_CLASSES,
    UnfoldAdminPasswordWidget,
    UnfoldAdminSelect2Widget,
    UnfoldAdminTextareaWidget,
)

from apps.accounts.models import WEEKDAYS, validate_hours, validate_origins

WEEKDAY_NAMES = (
    _("Monday"), _("Tuesday"), _("Wednesday"), _("Thursday"), _("Friday"), _("Saturday"), _("Sunday"),
)  # fmt: skip


class HoursWidget(forms.MultiWidget):
    """Two times a day, Monday first."""

    def __init__(self) -> None:
        time = forms.TimeInput(attrs={"type": "time", "class": " ".join(INPUT_CLASSES)}, format="%H:%M")
        super().__init__([time] * (2 * WEEKDAYS))

    def decompress(self, value: Any) -> list[str]:
        hours = value if isinstance(value, list) and len(value) == WEEKDAYS else [""] * WEEKDAYS
        return [part for entry in hours for part in (entry.split("-") if entry else ("", ""))]

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: BaseRenderer | None = None
    ) -> SafeString:
        parts = self.get_context(name, value, attrs)["widget"]["subwidgets"]
        days = [
            {"name": day, "opens": parts[2 * at], "closes": parts[2 * at + 1]}
            for at, day in enumerate(WEEKDAY_NAMES)
        ]
        return render_to_string("admin/fields/hours.html", {"days": days})


class HoursField(forms.MultiValueField):
    """Seven entries as the model keeps them: "09:00-17:30", or "" for a closed day."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("widget", HoursWidget())
        times = [forms.TimeField(required=False) for _ in range(2 * WEEKDAYS)]
        # Given by JSONField's own form field, meaningless here.
        for name in ("encoder", "decoder"):
            kwargs.pop(name, None)
        super().__init__(fields=times, require_all_fields=False, required=False, **kwargs)

    def prepare_value(self, value: Any) -> Any:
        # A list would be taken for the inputs' values as they are.
        return (
            HoursWidget().decompress(value) if isinstance(value, list) and len(value) == WEEKDAYS else value
        )

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.prepare_value(initial) != [part or "" for part in data])

    def compress(self, data_list: Sequence[Any]) -> list[str]:
        hours = []
        parts = list(data_list) or [None] * (2 * WEEKDAYS)
        for day, opens, closes in zip(WEEKDAY_NAMES, parts[::2], parts[1::2], strict=True):
            if (opens is None) != (closes is None):
                raise ValidationError(_("%(day)s: give both times, or none."), params={"day": day})
            if opens is not None and opens >= closes:
                raise ValidationError(_("%(day)s: it must open before it closes."), params={"day": day})
            hours.append(f"{opens:%H:%M}-{closes:%H:%M}" if opens is not None else "")
        validate_hours(hours)
        return hours


class LinesField(forms.CharField):
    """A list of texts, one a line; empty lines do not count."""

    def __init__(self, *, most: int = 50, longest: int = 300, **kwargs: Any) -> None:
        self.most, self.longest = most, longest
        kwargs.setdefault("widget", UnfoldAdminTextareaWidget(attrs={"rows": 3}))
        super().__init__(**kwargs)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        return self.lines(super().clean(value))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return self.lines(self.prepare_value(initial) or "") != self.lines(data or "")

    def lines(self, text: str) -> list[str]:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if len(lines) > self.most:
            raise ValidationError(_("At most %(most)d lines."), params={"most": self.most})
        if any(len(line) > self.longest for line in lines):
            raise ValidationError(
                _("At most %(longest)d characters a line."), params={"longest": self.longest}
            )
        return lines


class OriginsField(LinesField):
    """Exact origins, one a line."""

    def clean(self, value: Any) -> Any:
        origins = [origin.rstrip("/").lower() for origin in super().clean(value)]
        validate_origins(origins)
        return list(dict.fromkeys(origins))


class WriteOnlyField(forms.CharField):
    """A secret: what is stored is never shown, an empty input keeps it."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs["widget"] = UnfoldAdminPasswordWidget(
            attrs={"autocomplete": "new-password"}, render_value=False
        )
        kwargs["required"] = False
        super().__init__(**kwargs)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(data)


class WriteOnlyForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable at run time
    """Keeps the stored secrets of `write_only` where their inputs are empty.

    They stay with the server at `sent_to`: whoever may edit that address could else have a stored secret sent to a
    server of their own.
    """

    write_only: tuple[str, ...] = ()
    sent_to = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stored = {name: getattr(self.instance, name) for name in self.write_only}
        for name, stored in self._stored.items():
            self.initial.pop(name, None)
            self.fields[name].help_text = (
                _("One is stored. Leave this empty to keep it.") if stored else _("None is stored yet.")
            )

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean() or {}
        moved = _origin(cleaned.get(self.sent_to)) != _origin(self.initial.get(self.sent_to))
        for name, stored in self._stored.items():
            if cleaned.get(name):
                continue
            if stored and moved and self.sent_to in cleaned:
                self.add_error(name, _("The address has changed: enter the key again."))
            else:
                cleaned[name] = stored
        return cleaned


def _origin(url: str | None) -> tuple[str, str]:
    parts = urlsplit(url or "")
    return parts.scheme, parts.netloc


class TimezoneField(forms.ChoiceField):
    """A zone of the tz database."""

    def __init__(self, **kwargs: Any) -> None:
        zones = sorted(zone for zone in available_timezones() if "/" in zone and not zone.startswith("Etc/"))
        super().__init__(choices=[("UTC", "UTC"), *((zone, zone) for zone in zones)], **kwargs)
        self.widget = UnfoldAdminSelect2Widget(choices=self.choices)
