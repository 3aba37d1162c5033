"""What Lantern sells and says, in both languages. Content only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Customer:
    id: str
    name: str
    email: str


@dataclass(frozen=True, slots=True)
class Product:
    """Names and descriptions by language; `art` names the drawing under templates/demo/art."""

    art: str
    kind: str
    price: str
    name: dict[str, str]
    about: dict[str, str]


CUSTOMERS: Final = {
    customer.id: customer
    for customer in (
        Customer("mia", "Mia Chen", "mia.chen@example.com"),
        Customer("leo", "Leo Martin", "leo.martin@example.com"),
    )
}

PRODUCTS: Final = (
    Product(
        "lantern", "lamps", "€89",
        {"en": "Dusk table lantern", "zh": "暮光台灯"},
        {"en": "Warm, dimmable light for forty hours on one charge.", "zh": "暖光可调，一次充电可用四十小时。"},
    ),
    Product(
        "headlamp", "lamps", "€54",
        {"en": "Trail headlamp", "zh": "山径头灯"},
        {"en": "400 lumens, red night mode, only 78 grams.", "zh": "400 流明，红光夜视，仅重 78 克。"},
    ),
    Product(
        "boot", "boots", "€189",
        {"en": "Ridge hiking boot", "zh": "山脊徒步靴"},
        {"en": "Waterproof leather that can be resoled.", "zh": "防水皮面，鞋底可更换。"},
    ),
    Product(
        "shoe", "boots", "€139",
        {"en": "Creek mid boot", "zh": "溪谷中帮靴"},
        {"en": "Light and quick to dry, for wet summers.", "zh": "轻便快干，适合多雨的夏天。"},
    ),
    Product(
        "tent", "tents", "€329",
        {"en": "Fjell tent for two", "zh": "山原双人帐篷"},
        {"en": "Two doors, 1.9 kg, up in four minutes.", "zh": "双门设计，重 1.9 公斤，四分钟搭好。"},
    ),
    Product(
        "tarp", "tents", "€119",
        {"en": "Grove tarp", "zh": "林间天幕"},
        {"en": "Three by three metres of dry ground anywhere.", "zh": "三米见方，随处撑起一片干爽。"},
    ),
)  # fmt: skip

WORDS: Final = {
    "en": {
        "title": "Lantern — lamps, boots and tents",
        "tagline": "Made for the hours after the sun is gone.",
        "intro": "Lamps, boots and tents that last, repaired by the people who make them.",
        "browse": "See what is new",
        "lamps": "Lamps",
        "boots": "Boots",
        "tents": "Tents",
        "other_language": "中文",
        "you_are": "Browse as",
        "visitor": "Visitor",
        "hint_visitor": "This is a demo. Open the chat at the bottom right and ask, or choose a customer here.",
        "hint_mia": "You are Mia. Orders 1042, 1017 and 0998 are yours: ask where 1042 is.",
        "hint_leo": "You are Leo. Orders 1050 and 1031 are yours.",
        "new": "New this season",
        "promise_1": "Returns for 60 days",
        "promise_1_about": "Boots you have worn, too: 30 days, for store credit.",
        "promise_2": "Repairs for life",
        "promise_2_about": "Soles, poles, zips and batteries at cost.",
        "promise_3": "Two to four working days",
        "promise_3_about": "Tracked all the way; the next day if you are in a hurry.",
        "ask": "Ask us anything",
        "footer": "Lantern is the demo shop of chatsvc. Nothing here can be bought.",
    },
    "zh": {
        "title": "Lantern｜灯具、靴子与帐篷",
        "tagline": "为日落之后的时光而造",
        "intro": "经久耐用的灯具、靴子与帐篷，由制作它们的人负责维修。",
        "browse": "看看新品",
        "lamps": "灯具",
        "boots": "靴子",
        "tents": "帐篷",
        "other_language": "English",
        "you_are": "当前身份",
        "visitor": "访客",
        "hint_visitor": "这是演示商店。点击右下角打开客服提问，或在这里切换为一位顾客。",
        "hint_mia": "您现在是 Mia，订单 1042、1017 和 0998 是您的：问问 1042 到哪了。",
        "hint_leo": "您现在是 Leo，订单 1050 和 1031 是您的。",
        "new": "本季新品",
        "promise_1": "60 天退货",
        "promise_1_about": "靴子穿过也行：30 天内退成购物金。",
        "promise_2": "终身维修",
        "promise_2_about": "鞋底、帐杆、拉链和电池，只收成本价。",
        "promise_3": "2–4 个工作日送达",
        "promise_3_about": "全程可追踪，急用可选次日达。",
        "ask": "有问题，随时问",
        "footer": "Lantern 是 chatsvc 的演示商店，这里的商品并不出售。",
    },
}


def shown(language: str) -> dict[str, Any]:
    """The page's context in one language."""
    products = [
        {
            "art": f"demo/art/{product.art}.svg",
            "kind": product.kind,
            "kind_name": WORDS[language][product.kind],
            "price": product.price,
            "name": product.name[language],
            "about": product.about[language],
        }
        for product in PRODUCTS
    ]
    return {"words": WORDS[language], "products": products, "customers": CUSTOMERS.values()}
