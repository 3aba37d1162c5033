"""The loader, the frame and the demo shop, as browsers ask for them."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import jwt
import pytest
from django.test import Client

from apps.accounts.models import Site, Workspace
from apps.customers.identity import identify
from apps.web.widget import MODULES
from chatsvc.environment import BASE_DIR

pytestmark = pytest.mark.django_db
SCRIPTS = BASE_DIR / "static"
LOADER_LIMIT_BYTES = 5 * 1024


@pytest.fixture
def site() -> Site:
    return Site.objects.create(
        workspace=Workspace.objects.create(name="Lantern"),
        name="</script><script>alert(1)</script>",
        allowed_origins=["https://shop.example", "http://localhost:8000"],
    )


def imports(module: str) -> set[str]:
    """The modules this one imports, by their path under static/."""
    text = (SCRIPTS / module).read_text(encoding="utf-8")
    found = re.findall(r'^import\s(?:[^"]*?from\s)?"(\.[^"]+)"', text, flags=re.MULTILINE)
    return {str((SCRIPTS / module).parent.joinpath(name).resolve().relative_to(SCRIPTS)) for name in found}


def closure(module: str) -> set[str]:
    known, waiting = {module}, [module]
    while waiting:
        new = imports(waiting.pop()) - known
        known |= new
        waiting.extend(new)
    return known


def test_the_loader_is_small_and_public(client: Client) -> None:
    answer = client.get("/widget.js", headers={"accept-encoding": "gzip"})
    assert answer.status_code == 200
    assert answer["Content-Encoding"] == "gzip"
    assert len(answer.content) < LOADER_LIMIT_BYTES
    assert answer["Cross-Origin-Resource-Policy"] == "cross-origin"
    again = client.get("/widget.js", headers={"accept-encoding": "gzip", "if-none-match": answer["ETag"]})
    assert again.status_code == 304


def test_every_process_gives_the_loader_the_same_tag(client: Client) -> None:
    answer = client.get("/widget.js")
    assert answer["ETag"] == f'"{sha256(answer.content).hexdigest()[:16]}"'


def test_only_the_allowed_origins_may_show_the_frame(client: Client, site: Site) -> None:
    answer = client.get(f"/widget/{site.pk}/")
    policy = dict(rule.split(" ", 1) for rule in answer["Content-Security-Policy"].split("; "))
    assert policy["frame-ancestors"] == "https://shop.example http://localhost:8000"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert "X-Frame-Options" not in answer


def test_a_site_without_origins_is_shown_nowhere(client: Client, site: Site) -> None:
    Site.objects.filter(pk=site.pk).update(allowed_origins=[])
    assert "frame-ancestors 'none'" in client.get(f"/widget/{site.pk}/")["Content-Security-Policy"]


def test_the_frame_tells_what_the_first_paint_needs_and_no_secret(client: Client, site: Site) -> None:
    page = client.get(f"/widget/{site.pk}/?lang=zh-CN").content.decode()
    assert "<script>alert" not in page
    config = json.loads(page.split('type="application/json">', 1)[1].split("</script>", 1)[0])
    assert config["locale"] == "zh"
    assert config["greeting"]["zh"] == site.greeting_zh
    assert config["origins"] == site.allowed_origins
    assert site.identity_secret not in page


@pytest.mark.parametrize("unknown", ["nope", "%00", "a" * 300])
def test_an_unknown_site_is_told_so(client: Client, unknown: str) -> None:
    answer = client.get(f"/widget/{unknown}/")
    assert answer.status_code == 404
    assert "data-site" in answer.content.decode()


def test_the_frame_preloads_exactly_what_it_imports() -> None:
    assert set(MODULES) == closure("js/widget/app.js")


def test_both_catalogs_hold_the_same_words_and_names() -> None:
    def read(language: str) -> dict[str, set[str]]:
        catalog = json.loads((SCRIPTS / f"js/widget/locale/{language}.json").read_text(encoding="utf-8"))
        return {key: set(re.findall(r"\{(\w+)\}", str(text))) for key, text in catalog.items()}

    assert read("en") == read("zh")


def test_every_word_the_widget_says_is_in_the_catalog() -> None:
    catalog = json.loads((SCRIPTS / "js/widget/locale/en.json").read_text(encoding="utf-8"))
    said = {
        word
        for path in Path(SCRIPTS / "js/widget").glob("*.js")
        for word in re.findall(r'\bsay\("(\w+)"', path.read_text(encoding="utf-8"))
    }
    assert said - set(catalog) == set()


def test_the_demo_exists_only_in_a_demo(client: Client, site: Site, settings: Any) -> None:
    settings.DEMO = False
    assert client.get("/demo/").status_code == 404
    assert client.get("/demo/identity?customer=mia").status_code == 404


def test_the_demo_embeds_the_public_snippet(client: Client, site: Site, settings: Any) -> None:
    settings.DEMO = True
    for language in ("en", "zh"):
        page = client.get(f"/demo/?lang={language}").content.decode()
        assert f'<script async src="/widget.js" data-site="{site.pk}"></script>' in page


@pytest.mark.parametrize(
    ("address", "browser", "shown"),
    [
        ("/demo/", "zh-CN,zh;q=0.9,en;q=0.8", "zh-Hans"),
        ("/demo/", "en-GB,en;q=0.9", "en"),
        ("/demo/", "fr", "en"),
        ("/demo/?lang=en", "zh-CN", "en"),
        ("/demo/?lang=zh", "en-GB", "zh-Hans"),
    ],
)
def test_the_demo_speaks_the_browsers_language_until_another_is_chosen(
    address: str, browser: str, shown: str, client: Client, site: Site, settings: Any
) -> None:
    settings.DEMO = True
    answer = client.get(address, headers={"accept-language": browser})
    assert f'<html lang="{shown}">' in answer.content.decode()
    assert "Accept-Language" in answer["Vary"]


def test_the_demo_signs_what_the_socket_accepts(client: Client, site: Site, settings: Any) -> None:
    settings.DEMO = True
    identity = client.get("/demo/identity?customer=mia").json()["identity"]
    assert jwt.decode(identity, options={"verify_signature": False})["sub"] == "mia"
    found = identify("", identity)
    assert (found.site_id, found.name, found.verified) == (site.pk, "Mia Chen", True)
    assert client.get("/demo/identity?customer=eve").status_code == 404


def test_what_sends_drafts_is_loaded_only_where_the_site_wants_it(client: Client, site: Site) -> None:
    script = 'src="/static/js/widget/drafts.js"'
    assert script not in client.get(f"/widget/{site.pk}/").content.decode()
    Site.objects.filter(pk=site.pk).update(reads_drafts=True)
    assert script in client.get(f"/widget/{site.pk}/").content.decode()
