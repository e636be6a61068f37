"""An agent that answers a question twice, compares the answers, and goes on with the better one.

    python branches.py
"""

from __future__ import annotations

from boughdb import Bough


def answer(style: str) -> str:
    """Stands for a model that is asked with another instruction each time."""
    return {"short": "Hazel.", "long": "Hazel, a shrub that bears nuts in autumn."}[style]


def main() -> None:
    session = Bough().create("Name a tree")
    question = session.append("Name a tree, and say one thing about it.")
    answers: dict[str, str] = {}
    for style in ["short", "long"]:
        message = {"role": "assistant", "content": [{"type": "text", "text": answer(style)}]}
        answers[style] = session.append(message, parent_id=question["entry_id"])["entry_id"]

    best = max(answers, key=lambda style: len(answer(style)))
    session.switch_to(answers[best])
    session.append("Tell me more.", expected_leaf=answers[best])
    print(f"went on with the {best} answer; {len(list(session.branches()))} branches are kept")


if __name__ == "__main__":
    main()
