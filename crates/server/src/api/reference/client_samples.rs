//! Calls of the client libraries, as code samples.

/// A call as code for each client.
pub(super) struct ClientCall {
    /// Which object it is a call of.
    on: On,
    python: &'static str,
    typescript: &'static str,
}

enum On {
    Client,
    Session,
}

impl ClientCall {
    /// A program for Python.
    pub(super) fn python(&self) -> String {
        let session = match self.on {
            On::Client => "",
            On::Session => "    session = bough.session(\"first\")\n",
        };
        let lines: String = self.python.lines().map(|line| format!("    {line}\n")).collect();
        format!("from boughdb import Bough\n\nwith Bough() as bough:\n{session}{lines}")
    }

    /// A program for TypeScript.
    pub(super) fn typescript(&self) -> String {
        let start = match self.on {
            On::Client => "const bough = new Bough();",
            On::Session => "const session = new Bough().session(\"first\");",
        };
        format!("import {{ Bough }} from \"boughdb\";\n\n{start}\n{}\n", self.typescript)
    }
}

/// The call of an operation; `None` where the clients have no call for it.
pub(super) fn client_call(operation_id: &str) -> Option<&'static ClientCall> {
    CALLS.iter().find(|(id, _)| *id == operation_id).map(|(_, call)| call)
}

const fn of_client(python: &'static str, typescript: &'static str) -> ClientCall {
    ClientCall { on: On::Client, python, typescript }
}

const fn of_session(python: &'static str, typescript: &'static str) -> ClientCall {
    ClientCall { on: On::Session, python, typescript }
}

/// The calls by the ids of their operations.
static CALLS: &[(&str, ClientCall)] = &[
    (
        "createSession",
        of_client(
            "session = bough.create(\"My first session\")\nprint(session.id)",
            "const session = await bough.create({ title: \"My first session\" });\nconsole.log(session.id);",
        ),
    ),
    (
        "ensureSession",
        of_client(
            "bough.ensure(\"first\", title=\"My first session\")",
            "await bough.ensure(\"first\", { title: \"My first session\" });",
        ),
    ),
    (
        "listSessions",
        of_client(
            "for meta in bough.list():\n    print(meta[\"session_id\"])",
            "for await (const meta of bough.list()) console.log(meta.session_id);",
        ),
    ),
    (
        "search",
        of_client("print(bough.search(\"hello\"))", "console.log(await bough.search(\"hello\"));"),
    ),
    (
        "streamAllEvents",
        of_client(
            "with bough.watch() as events:\n    for event in events:\n        print(event)",
            "for await (const event of bough.watch()) console.log(event);",
        ),
    ),
    ("undeleteSession", of_client("bough.undelete(\"first\")", "await bough.undelete(\"first\");")),
    ("appendEntry", of_session("session.append(\"hello\")", "await session.append(\"hello\");")),
    (
        "replaceMessage",
        of_session(
            "session.update(\"e_1\", [{\"type\": \"text\", \"text\": \"hello\"}])",
            "await session.update(\"e_1\", [{ type: \"text\", text: \"hello\" }]);",
        ),
    ),
    (
        "appendDeltas",
        of_session(
            "with session.stream() as reply:\n    reply.text(\"Hello\")\n    reply.text(\" there.\")",
            "await session.stream(async (reply) => {\n  await reply.text(\"Hello\");\n  await reply.text(\" there.\");\n});",
        ),
    ),
    (
        "setLabel",
        of_session("session.label(\"e_1\", \"start\")", "await session.label(\"e_1\", \"start\");"),
    ),
    ("getSession", of_session("print(session.meta())", "console.log(await session.meta());")),
    (
        "listMessages",
        of_session(
            "for item in session.messages():\n    print(item)",
            "for await (const item of session.messages()) console.log(item.message);",
        ),
    ),
    (
        "getEntry",
        of_session("print(session.entry(\"e_1\"))", "console.log(await session.entry(\"e_1\"));"),
    ),
    ("getContext", of_session("print(session.context())", "console.log(await session.context());")),
    (
        "planCompaction",
        of_session(
            "print(session.plan_compaction())",
            "console.log(await session.planCompaction());",
        ),
    ),
    (
        "compactSession",
        of_session(
            "print(session.compact(\"They talked about rain.\"))",
            "console.log(await session.compact(\"They talked about rain.\"));",
        ),
    ),
    ("undoCompaction", of_session("session.undo_compaction()", "await session.undoCompaction();")),
    ("getUsage", of_session("print(session.usage())", "console.log(await session.usage());")),
    (
        "streamSessionEvents",
        of_session(
            "with session.watch() as events:\n    for event in events:\n        print(event)",
            "for await (const event of session.watch()) console.log(event);",
        ),
    ),
    (
        "listBranches",
        of_session(
            "for branch in session.branches():\n    print(branch)",
            "for await (const branch of session.branches()) console.log(branch);",
        ),
    ),
    ("setActiveLeaf", of_session("session.switch_to(\"e_1\")", "await session.switchTo(\"e_1\");")),
    ("clearActiveLeaf", of_session("session.switch_to(None)", "await session.switchTo(null);")),
    (
        "forkSession",
        of_session(
            "copy = session.fork(\"e_1\")\nprint(copy.id)",
            "const copy = await session.fork(\"e_1\");\nconsole.log(copy.id);",
        ),
    ),
    (
        "updateSession",
        of_session(
            "session.set_meta(title=\"My first session\")",
            "await session.setMeta({ title: \"My first session\" });",
        ),
    ),
    ("setStatus", of_session("session.set_status(\"done\")", "await session.setStatus(\"done\");")),
    ("archiveSession", of_session("session.archive()", "await session.archive();")),
    ("unarchiveSession", of_session("session.unarchive()", "await session.unarchive();")),
    ("deleteSession", of_session("session.delete()", "await session.delete();")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_whole_program() {
        let call = client_call("getUsage").unwrap();
        let python = "from boughdb import Bough\n\nwith Bough() as bough:\n    \
                      session = bough.session(\"first\")\n    print(session.usage())\n";
        assert_eq!(call.python(), python);
        let typescript = "import { Bough } from \"boughdb\";\n\nconst session = new Bough().session(\"first\");\n\
                          console.log(await session.usage());\n";
        assert_eq!(call.typescript(), typescript);
    }
}
