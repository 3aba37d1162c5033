from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from apps.conversations.commands import EffectKind


class TurnsConfig(AppConfig):
    name = "apps.turns"
    label = "turns"
    verbose_name = _("Turns")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models can be imported only now.
        from apps.conversations.outbox import register  # noqa: PLC0415
        from apps.turns.mail import mail_reply  # noqa: PLC0415

        register(EffectKind.MAIL_REPLY, mail_reply)
