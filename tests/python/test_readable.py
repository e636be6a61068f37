"""An agent that runs through an adapter is a conversation to read: in `bough show` and `bough tree`, as a person reads it.

Each agent is asked whether it will rain, asks its tool, and answers. The models are played; the frameworks are real.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from typing import Any

import pytest
from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.usage import Usage
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import messages as pydantic_messages
from pydantic_ai.conversation import Conversation
from pydantic_ai.models.function import FunctionModel

from boughdb.claude_agent import BoughSessionStore
from boughdb.langgraph import BoughSaver
from boughdb.openai_agents import BoughSession
from boughdb.pydantic_ai import BoughConversationStore

ASKED, SAID = "Will it rain?", "It stays dry."


def rain(city: str) -> str:
    """Says whether it rains."""
    return f"dry in {city}"


@pytest.fixture
def anyio_backend() -> str:
    """The frameworks run on asyncio."""
    return "asyncio"


def bough(url: str, *words: str) -> str:
    command = [os.environ["BOUGH"], *words, "--server", url]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def assert_shown(url: str, session_id: str) -> None:
    """`bough show` shows the question, the call, its result and the answer."""
    shown = bough(url, "show", session_id, "--full")
    places = [shown.rindex(text) for text in (ASKED, "→ rain", "dry in Oslo", SAID)]
    assert places == sorted(places), shown


def assert_readable(url: str, session_id: str) -> None:
    """So does `bough tree`, in one branch."""
    assert_shown(url, session_id)
    tree = bough(url, "tree", session_id)
    lines = [re.sub(r"  \S+( +← active)?$", "", line).removeprefix("• ") for line in tree.splitlines()[1:]]
    assert lines == [f"user: {ASKED}", "assistant: → rain", "tool: dry in Oslo", f"assistant: {SAID}"], tree


def test_langgraph(url: str) -> None:
    call = {"name": "rain", "args": {"city": "Oslo"}, "id": "c1"}
    replies = iter([AIMessage("", tool_calls=[call]), AIMessage(SAID)])
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda _state: {"messages": [next(replies)]})
    graph.add_node("tools", ToolNode([rain]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    graph.add_edge("tools", "model")
    thread_id = f"readable-{secrets.token_hex(4)}"
    app: Any = graph.compile(checkpointer=BoughSaver(url))
    app.invoke({"messages": [HumanMessage(ASKED)]}, {"configurable": {"thread_id": thread_id}})
    assert_readable(url, thread_id)


class PlayedModel(Model):
    """A model of the OpenAI Agents SDK that gives these replies."""

    def __init__(self, *replies: Any) -> None:
        self._replies = iter(replies)

    async def get_response(self, *_arguments: Any, **_more: Any) -> ModelResponse:
        return ModelResponse(output=[next(self._replies)], usage=Usage(), response_id=None)

    def stream_response(self, *_arguments: Any, **_more: Any) -> Any:
        raise NotImplementedError


@pytest.mark.anyio
async def test_openai_agents(url: str) -> None:
    call = ResponseFunctionToolCall(id="f1", call_id="c1", name="rain", arguments='{"city":"Oslo"}', type="function_call")
    text = ResponseOutputText(text=SAID, type="output_text", annotations=[])
    answer = ResponseOutputMessage(id="m1", role="assistant", status="completed", type="message", content=[text])
    set_tracing_disabled(True)
    agent = Agent(name="weather", tools=[function_tool(rain)], model=PlayedModel(call, answer))
    session = BoughSession(f"readable-{secrets.token_hex(4)}", url)
    await Runner.run(agent, ASKED, session=session)
    assert_readable(url, session.session_id)


@pytest.mark.anyio
async def test_pydantic_ai(url: str) -> None:
    replies = iter(
        [
            pydantic_messages.ModelResponse(parts=[pydantic_messages.ToolCallPart("rain", {"city": "Oslo"}, tool_call_id="c1")]),
            pydantic_messages.ModelResponse(parts=[pydantic_messages.TextPart(SAID)]),
        ]
    )
    agent = PydanticAgent(FunctionModel(lambda _messages, _info: next(replies)), tools=[rain])
    conversation_id = f"readable-{secrets.token_hex(4)}"
    result = await agent.run(ASKED, conversation=Conversation(conversation_id=conversation_id))
    await BoughConversationStore(url).save(result)
    assert_readable(url, f"pydantic-ai/{conversation_id}")


@pytest.mark.anyio
async def test_claude_agent(url: str) -> None:
    """The SDK mirrors the lines of its transcript into the store; the program that writes them is not run here."""
    call = {"type": "tool_use", "id": "c1", "name": "rain", "input": {"city": "Oslo"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "dry in Oslo"}
    lines: Any = [
        {"type": "user", "uuid": "1", "message": {"role": "user", "content": ASKED}},
        {"type": "assistant", "uuid": "2", "message": {"role": "assistant", "model": "m", "content": [call]}},
        {"type": "user", "uuid": "3", "message": {"role": "user", "content": [result]}},
        {"type": "assistant", "uuid": "4", "message": {"role": "assistant", "content": [{"type": "text", "text": SAID}]}},
    ]
    prefix = f"readable-{secrets.token_hex(4)}"
    await BoughSessionStore(url, prefix=prefix).append({"project_key": "project", "session_id": "session"}, lines)
    assert_shown(url, f"{prefix}/project/session")
