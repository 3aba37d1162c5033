from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RulebookConfig(AppConfig):
    name = "apps.rulebook"
    label = "rulebook"
    verbose_name = _("Rules")
    default_auto_field = "django.db.models.BigAutoField"
