"""Routes of the agents' pages."""

from django.urls import path

from apps.web.dashboard import Login, Logout, dashboard

urlpatterns = [
    path("dashboard/", dashboard, name="dashboard"),
    path("login/", Login.as_view(), name="login"),
    path("logout/", Logout.as_view(), name="logout"),
]
