"""Every metric of the product, with its unit. Labels come from closed sets."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

commit_seconds = Histogram("chatsvc_commit_seconds", "A group commit, its retries included", buckets=_SECONDS)
commit_batch = Histogram(
    "chatsvc_commit_batch_commands", "Commands in a commit", buckets=(1, 2, 4, 8, 16, 64, 256)
)
sockets = Gauge("chatsvc_sockets", "Open authenticated clients, whatever carries them", ["kind"])
audiences = Gauge("chatsvc_audiences", "Conversations and inboxes that clients of this process listen to")
tasks = Gauge("chatsvc_tasks", "Tasks of the event loop, when this page was asked for")
threads = Gauge("chatsvc_threads", "Threads, when this page was asked for")
heap_bytes = Gauge(
    "chatsvc_heap_bytes", "Memory in use, small Python objects apart, when this page was asked for"
)
python_blocks = Gauge("chatsvc_python_blocks", "Small Python objects alive, when this page was asked for")
http_lines = Gauge(
    "chatsvc_http_lines", "Open lines of clients without a WebSocket: stream, poll", ["transport"]
)
connections = Gauge(
    "chatsvc_connections",
    "Connections of clients, whatever carries them, waiting for their hello or let in",
    ["state"],
)
connections_refused = Counter(
    "chatsvc_connections_refused_total",
    "Connections for which there was no room: address, waiting, files, greeting",
    ["why"],
)
greeting = Gauge(
    "chatsvc_greeting", "Clients who have said hello and wait until their first state may be read"
)
heartbeat_seconds = Histogram(
    "chatsvc_heartbeat_seconds",
    "What customers are told to wait until their next ping",
    buckets=(15, 20, 30, 45, 60, 90, 120),
)
hang_ups = Counter("chatsvc_hang_ups_total", "Connections that were told to go, by close code", ["code"])
over_rate = Counter(
    "chatsvc_over_rate_total",
    "Actions refused because of what all processes allow: person, address, workspace, visits",
    ["of"],
)
relayed_errands = Counter(
    "chatsvc_relayed_errands_total", "POSTs to lines of other processes by their HTTP status", ["status"]
)
turns = Counter("chatsvc_turns_total", "Turns by their end", ["end"])
turns_live = Gauge("chatsvc_turns_live", "Turns running in this process")
turns_adopted = Counter(
    "chatsvc_turns_adopted_total", "Turns of processes that are gone, taken up by this one"
)
leases_ended = Counter(
    "chatsvc_leases_ended_total", "Leases that this process ended early because their holder's lock was free"
)
ttft_seconds = Histogram(
    "chatsvc_ttft_seconds", "Receipt of the question to the first delta", buckets=_SECONDS
)
added_seconds = Histogram(
    "chatsvc_added_seconds",
    "What we add to the model's own time: receipt to the request, first token to first frame",
    buckets=_SECONDS,
)
painted_seconds = Histogram(
    "chatsvc_painted_seconds", "Submit to the first visible text, as clients report", buckets=_SECONDS
)
inter_token_seconds = Histogram(
    "chatsvc_inter_token_seconds", "Between two pieces of an answer as they are read", buckets=_SECONDS
)
stage_seconds = Histogram("chatsvc_stage_seconds", "A stage of a turn", ["stage"], buckets=_SECONDS)
facts = Counter("chatsvc_facts_total", "Customer facts at turn start", ["state"])
shop_fetches = Counter("chatsvc_shop_fetches_total", "Facts asked of the shop inside a turn", ["outcome"])
shop_seconds = Histogram(
    "chatsvc_shop_seconds", "A fetch of facts inside a turn, whatever its end", buckets=_SECONDS
)
redis_failures = Counter(
    "chatsvc_redis_failures_total", "Redis calls that failed or were late", ["operation"]
)
hears_processes = Gauge(
    "chatsvc_hears_processes",
    "1 while what this process publishes comes back to it, as it comes to the others",
)
probes_lost = Counter(
    "chatsvc_probes_lost_total", "Probes between processes that did not come back within their second"
)
worker_canary_age_seconds = Gauge(
    "chatsvc_worker_canary_age_seconds",
    "Since a worker last did beat's canary task; NaN where that is unknown",
)
outbox_items = Gauge(
    "chatsvc_outbox_items", "Effects on the outside that are not done: due by now, or given up", ["state"]
)
dropped = Counter("chatsvc_dropped_total", "What a full queue has dropped", ["queue"])
refused_frames = Counter("chatsvc_refused_frames_total", "Client frames refused", ["code"])

llm_answers = Counter(
    "chatsvc_llm_answers_total", "Requests to model endpoints by their end", ["dialect", "outcome"]
)
llm_builtin_answers = Counter(
    "chatsvc_llm_builtin_answers_total", "Answers of the builtin provider, by why it spoke", ["reason"]
)
llm_extra_requests = Counter(
    "chatsvc_llm_extra_requests_total",
    "Requests beyond the first of a turn: again, elsewhere, hedge; or refused for want of budget",
    ["why", "outcome"],
)
llm_hedges = Counter("chatsvc_llm_hedges_total", "Second endpoints asked because the first was late", ["end"])
llm_first_text_seconds = Histogram(
    "chatsvc_llm_first_text_seconds",
    "Request to the endpoint's first text",
    ["dialect"],
    buckets=_SECONDS,
)
llm_in_flight = Gauge("chatsvc_llm_in_flight", "Answers being streamed by model endpoints", ["dialect"])
llm_connections_opened = Counter(
    "chatsvc_llm_connections_opened_total", "New connections to model endpoints", ["dialect"]
)
llm_connections_open = Gauge(
    "chatsvc_llm_connections_open", "HTTP/1.1 connections that are open to model endpoints", ["dialect"]
)
llm_connections_wanted = Gauge(
    "chatsvc_llm_connections_wanted", "Connections that their load asks for, over all endpoints", ["dialect"]
)
llm_tls_handshakes = Counter(
    "chatsvc_llm_tls_handshakes_total", "TLS handshakes with model endpoints, full or resumed", ["kind"]
)
llm_sockets = Gauge("chatsvc_llm_sockets", "Open WebSockets to model endpoints", ["dialect"])
llm_lanes_busy = Gauge(
    "chatsvc_llm_lanes_busy", "Lanes of model sockets with a response that has not ended", ["dialect"]
)
llm_socket_ends = Counter(
    "chatsvc_llm_socket_ends_total",
    "WebSockets to model endpoints by why they ended",
    ["dialect", "why"],
)
llm_socket_fallbacks = Counter(
    "chatsvc_llm_socket_fallbacks_total",
    "Answers that went over HTTP because no WebSocket was to be had",
    ["dialect"],
)
llm_prepared = Counter(
    "chatsvc_llm_prepared_total",
    "Prompts read before their question, by whether the question came",
    ["outcome"],
)
asked_early = Counter(
    "chatsvc_asked_early_total",
    "Prompts of questions that were being stored: used by their turn, differed, unneeded, failed, passed (not asked)",
    ["end"],
)
asked_early_seconds = Counter(
    "chatsvc_asked_early_seconds_total", "By how much models were asked sooner than their turns were open"
)
warmups = Counter(
    "chatsvc_warmups_total",
    "Beginnings of prompts to be read ahead, after a turn, at a draft or of a site: read, passed, capped, ended",
    ["why", "outcome"],
)
warmup_tokens = Counter(
    "chatsvc_warmup_tokens_total",
    "Tokens read ahead, by whether the model had computed them before",
    ["kind"],
)
warmed = Counter(
    "chatsvc_warmed_total",
    "Conversations read ahead: the next prompt found it computed (used), did not (missed), never came (wasted)",
    ["end"],
)
warmed_tokens = Counter(
    "chatsvc_warmed_tokens_total", "Tokens computed ahead for conversations, by what became of them", ["end"]
)
llm_requests = Counter(
    "chatsvc_llm_requests_total",
    "Requests of the Responses API: full, continued, prepared (nothing to answer yet), again (chain or socket lost)",
    ["dialect", "how"],
)
llm_input_items = Counter(
    "chatsvc_llm_input_items_total", "Items of a prompt that were sent, or spared by continuing", ["kind"]
)
llm_tokens = Counter("chatsvc_llm_tokens_total", "Tokens of answers; cached is a part of prompt", ["kind"])
knowledge_vectors = Counter(
    "chatsvc_knowledge_vectors_total",
    "Vectors of questions: made by the model, or known because the same words were asked before",
    ["how"],
)
knowledge_searches = Counter(
    "chatsvc_knowledge_searches_total",
    "Searches of the articles, by meaning and words or by words alone",
    ["by"],
)

answer_cache_looks = Counter(
    "chatsvc_answer_cache_looks_total", "Look-ups of the answer cache by what they found", ["found"]
)
answer_cache_vetoes = Counter(
    "chatsvc_answer_cache_vetoes_total", "Proposed answers that were turned down, by why", ["reason"]
)
answer_cache_look_seconds = Histogram(
    "chatsvc_answer_cache_look_seconds", "A look-up, Redis included", buckets=_SECONDS
)
answer_cache_saved_seconds = Counter(
    "chatsvc_answer_cache_saved_seconds_total", "What a model takes to its first text, once a hit"
)
answer_cache_kept = Counter("chatsvc_answer_cache_kept_total", "Answers kept by this process")
answer_cache_bytes = Gauge("chatsvc_answer_cache_bytes", "Memory of the answers held, estimated")

predictions = Counter(
    "chatsvc_predictions_total",
    "Needs that a next question was expected to have, by whether it had",
    ["outcome"],
)
prefetches = Counter(
    "chatsvc_prefetches_total", "What came of an expected need: fetched, fresh, busy, capped …", ["outcome"]
)
prefetched = Counter(
    "chatsvc_prefetched_total",
    "Facts fetched ahead, by whether the next question used or wasted them",
    ["end"],
)

drafts = Counter(
    "chatsvc_drafts_total",
    "Drafts by what became of their search: used, changed, replaced, stale, left; busy: not begun",
    ["end"],
)
drafts_saved_seconds = Counter(
    "chatsvc_drafts_saved_seconds_total", "What searches of drafts had run when their very text was sent"
)
drafts_wasted_seconds = Counter(
    "chatsvc_drafts_wasted_seconds_total", "What searches of drafts ran for texts that were never sent"
)

speculations = Counter(
    "chatsvc_speculations_total",
    "Answers begun for drafts by what became of them; passed, busy and capped: not begun",
    ["end"],
)
speculation_tokens = Counter(
    "chatsvc_speculation_tokens_total", "Tokens of answers begun for drafts, prompt and answer", ["end"]
)
speculation_saved_seconds = Counter(
    "chatsvc_speculation_saved_seconds_total",
    "What of the wait for a first token had passed before a turn asked",
)

contexts = Counter(
    "chatsvc_contexts_total",
    "Contexts at turn start: resident, from another process's copy, or from the log",
    ["found"],
)
context_copies = Counter(
    "chatsvc_context_copies_total",
    "Copies of contexts in Redis: written, evicted, too_big, broken, stale",
    ["outcome"],
)
context_digests = Counter(
    "chatsvc_context_digests_total",
    "Contexts above the high mark: shortened, or changed meanwhile",
    ["outcome"],
)
context_digest_seconds = Histogram(
    "chatsvc_context_digest_seconds", "Shortening a context, off the reply path", buckets=_SECONDS
)
context_digest_tokens = Counter(
    "chatsvc_context_digest_tokens_total", "Tokens of contexts before and after they were shortened", ["side"]
)
context_window_turns = Gauge(
    "chatsvc_context_window_turns", "Turns that stay as they were said when a context is shortened"
)
context_bytes = Gauge("chatsvc_context_bytes", "Memory of the resident contexts, estimated")
