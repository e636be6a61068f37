"""An agent that gives work to two others, each with a session of its own, and prints the tree of sessions.

    python sub_agents.py
"""

from __future__ import annotations

from boughdb import Bough


def main() -> None:
    bough = Bough()
    boss = bough.create("Report about trees")
    boss.append("Write a report about trees.")
    for topic in ["hazel", "birch"]:
        helper = bough.create(f"Research: {topic}", metadata={"parent": boss.id})
        helper.append(f"Find out about {topic}.")
        helper.set_status("done")
        boss.append_custom("sub_agent", {"session": helper.id, "topic": topic})

    print(boss.meta()["title"])
    for child in bough.list(metadata={"parent": boss.id}, order="created_asc"):
        print("  ", child["title"], child["status"])


if __name__ == "__main__":
    main()
