"""Fills the soak's database: two sites alike but for how they ask their model, and all who come. Prints JSON.

`python -m bench.soak.seed SHOP_URL SHOP_KEY MODEL_URL CUSTOMERS VISITORS AGENTS`
"""

from __future__ import annotations

import json
import sys

from bench.turn.seed import known_customer, make_site  # sets Django up

from apps.customers.identity import issue_visitor_token  # isort: skip
from apps.llm.models import ModelEndpoint  # isort: skip
from bench.turn.wanted import Model, Wanted  # isort: skip
from tests.chaos.seed import make_agent  # isort: skip


def main() -> None:
    shop_url, shop_key, model_url, customers, visitors, agents = sys.argv[1:]
    wanted = Wanted(
        shop_url=shop_url,
        shop_key=shop_key,
        model=Model(base_url=model_url),
        customers=0,
        answer_cache="full",
    )
    sites = [make_site(wanted) for _ in range(2)]
    over_sockets = ModelEndpoint.objects.filter(site=sites[1])
    over_sockets.update(provider=ModelEndpoint.Provider.RESPONSES_SOCKET, dialect="openai")
    people = {
        "identities": [known_customer(sites[n % 2], f"c{n}") for n in range(int(customers))],
        "visitors": [issue_visitor_token(sites[n % 2].pk)[0] for n in range(int(visitors))],
        "agents": [make_agent(sites[n % 2].workspace, f"Agent {n}") for n in range(int(agents))],
    }
    sys.stdout.write(json.dumps(people))


if __name__ == "__main__":
    main()
