from django.apps import AppConfig


class RulebookConfig(AppConfig):
    name = "apps.rulebook"
    label = "rulebook"
    default_auto_field = "django.db.models.BigAutoField"
