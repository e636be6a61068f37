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

/// A row for each call: the id of its operation, the object that it is a call of, and the code for Python and TypeScript.
macro_rules! calls {
    ($($id:ident $on:ident $python:literal $typescript:literal;)*) => {
        &[$((stringify!($id), ClientCall { on: On::$on, python: $python, typescript: $typescript })),*]
    };
}

/// The calls by the ids of their operations.
static CALLS: &[(&str, ClientCall)] = calls! {
    createSession Client
        "session = bough.create(\"My first session\")\nprint(session.id)"
        "const session = await bough.create({ title: \"My first session\" });\nconsole.log(session.id);";
    ensureSession Client
        "bough.ensure(\"first\", title=\"My first session\")"
        "await bough.ensure(\"first\", { title: \"My first session\" });";
    listSessions Client
        "for meta in bough.list():\n    print(meta[\"session_id\"])"
        "for await (const meta of bough.list()) console.log(meta.session_id);";
    search Client "print(bough.search(\"hello\"))" "console.log(await bough.search(\"hello\"));";
    streamAllEvents Client
        "with bough.watch() as events:\n    for event in events:\n        print(event)"
        "for await (const event of bough.watch()) console.log(event);";
    undeleteSession Client "bough.undelete(\"first\")" "await bough.undelete(\"first\");";
    appendEntry Session "session.append(\"hello\")" "await session.append(\"hello\");";
    replaceMessage Session
        "session.update(\"e_1\", [{\"type\": \"text\", \"text\": \"hello\"}])"
        "await session.update(\"e_1\", [{ type: \"text\", text: \"hello\" }]);";
    appendDeltas Session
        "with session.stream() as reply:\n    reply.text(\"Hello\")\n    reply.text(\" there.\")"
        "await session.stream(async (reply) => {\n  await reply.text(\"Hello\");\n  await reply.text(\" there.\");\n});";
    setLabel Session "session.label(\"e_1\", \"start\")" "await session.label(\"e_1\", \"start\");";
    getSession Session "print(session.meta())" "console.log(await session.meta());";
    listMessages Session
        "for item in session.messages():\n    print(item)"
        "for await (const item of session.messages()) console.log(item.message);";
    getEntry Session "print(session.entry(\"e_1\"))" "console.log(await session.entry(\"e_1\"));";
    getContext Session "print(session.context())" "console.log(await session.context());";
    planCompaction Session "print(session.plan_compaction())" "console.log(await session.planCompaction());";
    compactSession Session
        "print(session.compact(\"They talked about rain.\"))"
        "console.log(await session.compact(\"They talked about rain.\"));";
    undoCompaction Session "session.undo_compaction()" "await session.undoCompaction();";
    getUsage Session "print(session.usage())" "console.log(await session.usage());";
    streamSessionEvents Session
        "with session.watch() as events:\n    for event in events:\n        print(event)"
        "for await (const event of session.watch()) console.log(event);";
    listBranches Session
        "for branch in session.branches():\n    print(branch)"
        "for await (const branch of session.branches()) console.log(branch);";
    setActiveLeaf Session "session.switch_to(\"e_1\")" "await session.switchTo(\"e_1\");";
    clearActiveLeaf Session "session.switch_to(None)" "await session.switchTo(null);";
    forkSession Session "copy = session.fork(\"e_1\")\nprint(copy.id)" "const copy = await session.fork(\"e_1\");\nconsole.log(copy.id);";
    updateSession Session "session.set_meta(title=\"My first session\")" "await session.setMeta({ title: \"My first session\" });";
    setStatus Session "session.set_status(\"done\")" "await session.setStatus(\"done\");";
    archiveSession Session "session.archive()" "await session.archive();";
    unarchiveSession Session "session.unarchive()" "await session.unarchive();";
    deleteSession Session "session.delete()" "await session.delete();";
};

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
