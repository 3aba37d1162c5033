"""The one form of an error in REST: `{"code": …, "message": …, "fields"?: {name: [message]}, "retry_after_s"?: …}`."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler


def error_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler, with its many shapes made one."""
    response = exception_handler(error, context)
    if response is None:
        return None
    if isinstance(error, ValidationError):
        response.data = {
            "code": "invalid",
            "message": "Some fields are not right.",
            "fields": _fields(response.data),
        }
        return response
    detail = response.data.get("detail", "")
    code = detail.code if isinstance(detail, ErrorDetail) else "error"
    response.data = {"code": code, "message": str(detail)}
    if "Retry-After" in response:
        response.data["retry_after_s"] = int(response["Retry-After"])
    return response


def _fields(data: Any) -> dict[str, list[str]]:
    if isinstance(data, dict):
        return {name: [str(message) for message in _listed(messages)] for name, messages in data.items()}
    return {"non_field_errors": [str(message) for message in _listed(data)]}


def _listed(messages: Any) -> list[Any]:
    return messages if isinstance(messages, list) else [messages]
