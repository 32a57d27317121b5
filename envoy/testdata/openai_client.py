"""Uses the openai package against a base URL, as a test of weir's tells it to: openai_client.py URL [limited]."""
import sys

import openai

MODEL = "lab-model"
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}


def check(what, ok, got=None):
    if not ok:
        sys.exit(f"{what}: {got!r}")


def chat(client):
    r = client.chat.completions.create(
        model=MODEL, max_tokens=8, messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is a weir?"}]
    )
    check("chat", r.choices[0].message.content and r.usage.completion_tokens == 8, r)


def streamed_chat(client):
    text, usage = "", None
    for event in client.chat.completions.create(
        model=MODEL, max_tokens=8, stream=True, stream_options={"include_usage": True}, messages=[{"role": "user", "content": "What is a weir?"}]
    ):
        usage = event.usage or usage
        for choice in event.choices:
            text += choice.delta.content or ""
    check("streamed chat", text and usage.completion_tokens == 8, (text, usage))


def completions(client):
    r = client.completions.create(model=MODEL, prompt="A weir is", max_tokens=8)
    check("completions", r.choices[0].text and r.choices[0].finish_reason == "length", r)


def models(client):
    check("models", MODEL in [m.id for m in client.models.list()])
    check("one model", client.models.list().data[0].object == "model")


def tool_call(client):
    messages = [
        {"role": "user", "content": "Will it rain in Delft?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"place": "Delft"}'}}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": '{"rain": true}'},
    ]
    r = client.chat.completions.create(model=MODEL, max_tokens=8, messages=messages, tools=[WEATHER])
    check("tool call", r.choices[0].message.content, r)
    messages += [{"role": "assistant", "content": r.choices[0].message.content}, {"role": "user", "content": "And tomorrow?"}]
    again = client.chat.completions.create(model=MODEL, max_tokens=8, messages=messages, tools=[WEATHER])
    check("the next turn", again.usage.prompt_tokens > r.usage.prompt_tokens, again)


def unknown_model(client):
    try:
        client.chat.completions.create(model="no-such-model", messages=[{"role": "user", "content": "x"}])
    except openai.NotFoundError as e:
        check("the replica's own error", e.status_code == 404 and "no-such-model" in e.message, e)
    else:
        sys.exit("unknown model: no error")


def limited(client):
    try:
        client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "x"}], extra_headers={"x-weir-deadline": "100ms"}
        )
    except openai.RateLimitError as e:
        check("weir's refusal", e.status_code == 429 and e.code == "late" and e.type == "rate_limit_error" and e.body["message"], e)
        check("retry-after", int(e.response.headers["retry-after"]) >= 1, e.response.headers)
    else:
        sys.exit("no seat is free: no error")


client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0, timeout=30)
for step in [limited] if sys.argv[2:] == ["limited"] else [chat, streamed_chat, completions, models, tool_call, unknown_model]:
    step(client)
    print(step.__name__)
