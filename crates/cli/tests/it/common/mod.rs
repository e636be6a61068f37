//! What tests of the real program share: a data directory, sessions in it, and the program.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bough_platform::{Platform, RelPath};
use bough_service::api::{AppendManyRequest, AppendRequest, CreateRequest, SetActiveLeafRequest};
use bough_service::{Scope, Service};
use bough_session::{
    AgentMessage, AssistantMessage, ContentBlock, Entry, EntryBody, EntryId, FunctionCallBlock,
    FunctionResultMessage, Incarnation, MetaChange, Record, SessionId, SessionState, Usage,
    UserMessage,
};
use bough_store::{
    CATALOGUE_FILE, Catalogue, CatalogueFile, CatalogueRow, Listed, NativeOptions, NativeStore,
    Position, Store,
};
use serde_json::{Value, json};

/// How long anything may take on a machine that is busy with other things, so that only a hang fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Waits for something, but not for ever.
#[expect(clippy::disallowed_methods, reason = "the program under test takes real time")]
#[track_caller]
pub(crate) fn until(what: &str, mut check: impl FnMut() -> bool) {
    let started = Instant::now();
    while !check() {
        assert!(started.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A data directory of a test, and the program on it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

/// What the program answered.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A folder with one conversation in it, its session and its entries.
pub(crate) fn one_conversation() -> (Place, String, Vec<String>) {
    let place = Place::new();
    let (session, entries) =
        place.with(async |sessions| sessions.conversation("Date parser").await);
    let entries = entries.into_iter().map(|id| id.to_string()).collect();
    (place, session.to_string(), entries)
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.file("data")
    }

    /// The program with some arguments, on this data directory and away from the tester's own settings.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bough"));
        command.args(args).env_clear();
        for (name, value) in self.environment() {
            command.env(name, value);
        }
        command
    }

    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("BOUGH_DATA_DIR", self.data_dir().display().to_string()),
            ("HOME", self.path().display().to_string()),
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("TERM", "xterm-256color".into()),
        ]
    }

    pub(crate) fn run(&self, args: &[&str]) -> Answered {
        self.command(args).stdin(Stdio::null()).output().map(answered).unwrap()
    }

    /// Runs, and expects it to go well; what it printed.
    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let answered = self.run(args);
        assert_eq!(answered.code, 0, "{args:?} failed: {answered:?}");
        answered.out
    }

    /// Runs with `--json`, and expects it to go well.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let out = self.ok(&args);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error} in {out}"))
    }

    /// Does something with the sessions through the library.
    pub(crate) fn with<T>(&self, work: impl AsyncFnOnce(Sessions) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let platform = Platform::system(self.data_dir()).unwrap();
            let (clock, entropy) = (platform.clock.clone(), platform.entropy.clone());
            let options = NativeOptions::default();
            let store = NativeStore::open(platform, self.data_dir(), options).await.unwrap();
            let service = Service::new(Arc::new(store), clock, entropy);
            let done = work(Sessions { service: service.clone() }).await;
            service.store().close().await.unwrap();
            done
        })
    }

    /// Does something with the store itself, without waiting for the disk: for making much at once.
    pub(crate) fn with_store<T>(&self, work: impl AsyncFnOnce(&NativeStore) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let platform = Platform::system(self.data_dir()).unwrap();
            let durability = bough_store::Durability::MayLoseNewestOnPowerCut;
            let options = NativeOptions { durability, ..NativeOptions::default() };
            let store = NativeStore::open(platform, self.data_dir(), options).await.unwrap();
            let done = work(&store).await;
            store.close().await.unwrap();
            done
        })
    }

    /// Writes into the catalogue of a directory that no process has open.
    pub(crate) fn with_catalogue(&self, work: impl FnOnce(&Catalogue)) {
        let Platform { disk, clock, entropy } = Platform::system(self.data_dir()).unwrap();
        let name = RelPath::parse(CATALOGUE_FILE).unwrap();
        let file = CatalogueFile { disk, name, path: self.data_dir().join(CATALOGUE_FILE), clock };
        let mut epoch = [0; 16];
        entropy.fill(&mut epoch).unwrap();
        let (catalogue, _) = Catalogue::open(&file, Incarnation::new(epoch)).unwrap();
        work(&catalogue);
        catalogue.settle().unwrap();
    }
}

pub(crate) fn answered(output: Output) -> Answered {
    Answered {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// An entry as a store holds it.
pub(crate) fn entry(id: &str, parent_id: Option<EntryId>, message: AgentMessage) -> Entry {
    let id = EntryId::from_stored(id);
    let body = EntryBody::Message(message.into());
    Entry::new(id, parent_id, 1, body)
}

/// A row of the catalogue for a session that is nowhere else.
pub(crate) fn row(session: &SessionId, title: &str) -> CatalogueRow {
    let mut state = SessionState::new(session.clone());
    let change = MetaChange { title: Some(title.to_owned()), ..MetaChange::default() };
    state.apply(&Record::Meta(change), 1, 1);
    let mut life = [0; 16];
    let id = session.as_str().as_bytes();
    life.iter_mut().zip(id).for_each(|(to, from)| *to = *from);
    CatalogueRow {
        incarnation: Incarnation::new(life),
        position: Position::at(1),
        listed: Listed::of(&state),
        size: 0,
    }
}

/// A session that was changed, and its entries.
pub(crate) struct Changed {
    pub(crate) session: SessionId,
    pub(crate) revised: EntryId,
    pub(crate) left: EntryId,
    pub(crate) right: EntryId,
}

/// Sessions, to be made.
#[derive(Clone)]
pub(crate) struct Sessions {
    pub(crate) service: Service,
}

impl Sessions {
    pub(crate) async fn create(&self, title: &str) -> SessionId {
        let metadata = json!({"cwd": "/home/u/project"}).as_object().cloned();
        let request = CreateRequest { title: Some(title.into()), description: None, metadata };
        self.service.create(&Scope::owner(), request).await.unwrap().session_id
    }

    pub(crate) async fn append(&self, session: &SessionId, message: AgentMessage) -> EntryId {
        let request: AppendRequest =
            serde_json::from_value(json!({"session_id": session, "message": message})).unwrap();
        self.service.append(&Scope::owner(), request).await.unwrap().entry_id
    }

    pub(crate) async fn append_many(
        &self,
        session: &SessionId,
        messages: Vec<AgentMessage>,
    ) -> Vec<EntryId> {
        let request: AppendManyRequest =
            serde_json::from_value(json!({"session_id": session, "messages": messages})).unwrap();
        self.service.append_many(&Scope::owner(), request).await.unwrap().entry_ids
    }

    pub(crate) async fn set_leaf(&self, session: &SessionId, entry: &EntryId) {
        let request = SetActiveLeafRequest {
            expected_leaf: None,
            session_id: session.clone(),
            entry_id: entry.clone(),
        };
        self.service.set_active_leaf(&Scope::owner(), request).await.unwrap();
    }

    /// A session with a word in every kind of content, among others without any; each query, and the entry that it finds. `None`
    /// is the session itself.
    pub(crate) async fn planted(&self) -> (SessionId, Vec<(&'static str, Option<EntryId>)>) {
        self.conversation("Date parser").await;
        let session = self.create("plantedtitle").await;
        let message = |message: Value| serde_json::from_value::<AgentMessage>(message).unwrap();
        let reply = message(json!({
            "role": "assistant", "stop_reason": "error", "error_message": "plantederror E4242", "model": "m",
            "provider": "p", "timestamp": 2, "content": [
                {"type": "thinking", "text": "plantedthought"},
                {"type": "text", "text": "parsePlantedName and planted_snake_case"},
                {"type": "function_call", "id": "c", "function_id": "bash", "arguments": {"command": "cat plantedfile.rs"}},
            ],
        }));
        let asked =
            self.append(&session, user("plantedtext 日本語の文章 /etc/planted/path.toml")).await;
        let reply = self.append(&session, reply).await;
        let given = self.append(&session, result("c", "plantedresult: permission denied")).await;
        let label = json!({"session_id": session, "entry_id": asked, "label": "plantedlabel"});
        self.service.call(&Scope::owner(), "session::set-label", label).await.unwrap();
        let note = self.note(&session, "plantednote", json!({"said": "planteddata"})).await;
        let left = json!({"from_id": reply, "summary": "plantedbranch was left"});
        let left = self.note(&session, "bough.branch_summary", left).await;
        let queries = vec![
            ("plantedtext", Some(&asked)),
            ("日本語", Some(&asked)),
            ("章", Some(&asked)),
            ("/etc/planted/path.toml", Some(&asked)),
            ("plantedlabel", Some(&asked)),
            ("plantedthought", Some(&reply)),
            ("parseplantedname", Some(&reply)),
            ("plantedName", Some(&reply)),
            ("snake_case", Some(&reply)),
            ("plantedfile", Some(&reply)),
            ("\"plantederror e4242\"", Some(&reply)),
            ("\"permission denied\"", Some(&given)),
            ("plantedresult tool:read", Some(&given)),
            ("plantednote", Some(&note)),
            ("planteddata is:data", Some(&note)),
            ("plantedbranch is:summary", Some(&left)),
            ("plantedtitle", None),
        ];
        (session, queries.into_iter().map(|(query, entry)| (query, entry.cloned())).collect())
    }

    /// A session that was changed: a revised message, and two branches after it of which the second is active.
    pub(crate) async fn changed(&self) -> Changed {
        let session = self.create("Changed").await;
        let revised = self.append(&session, user("an outdatedword")).await;
        let left = self.append(&session, user("the leftword")).await;
        self.set_leaf(&session, &revised).await;
        let right = self.append(&session, user("the rightword")).await;
        let request =
            json!({"session_id": session, "entry_id": revised, "content": "a revisedword"});
        self.service.call(&Scope::owner(), "session::update-message", request).await.unwrap();
        Changed { session, revised, left, right }
    }

    async fn note(&self, session: &SessionId, custom_type: &str, data: Value) -> EntryId {
        let custom = json!({"custom_type": custom_type, "data": data});
        let request = json!({"session_id": session, "custom": custom});
        let noted = self.service.call(&Scope::owner(), "session::append", request).await.unwrap();
        EntryId::from_stored(noted["entry_id"].as_str().unwrap())
    }

    /// Sessions of a project whose ids begin alike, each with the word `needle`.
    pub(crate) async fn alike(&self, project: &Path) -> Vec<SessionId> {
        let ids = ["plan", "plan b", "plan \"c\""].map(SessionId::from_stored);
        for id in &ids {
            let ensured = json!({"session_id": id, "metadata": {"cwd": project}});
            self.service.call(&Scope::owner(), "session::ensure", ensured).await.unwrap();
            self.append(id, user("a needle")).await;
        }
        ids.to_vec()
    }

    /// A question, a call with its result, an answer, a second question and an answer to it.
    pub(crate) async fn conversation(&self, title: &str) -> (SessionId, Vec<EntryId>) {
        let session = self.create(title).await;
        let messages = vec![
            user("Fix the date parser"),
            call("c1", "read", json!({"path": "src/date.rs"})),
            result("c1", "fn parse() {}"),
            answer("Fixed it."),
            user("Add a test"),
            answer("Added \u{1b}[31m\u{202e} one for 世界."),
        ];
        let entries = self.append_many(&session, messages).await;
        (session, entries)
    }
}

pub(crate) fn user(text: &str) -> AgentMessage {
    AgentMessage::User(UserMessage::new(vec![ContentBlock::text(text)], 1))
}

pub(crate) fn answer(text: &str) -> AgentMessage {
    reply_with(vec![ContentBlock::text(text)])
}

pub(crate) fn call(id: &str, function: &str, arguments: Value) -> AgentMessage {
    let call = FunctionCallBlock::new(id.into(), function.into(), arguments.into());
    reply_with(vec![ContentBlock::FunctionCall(call)])
}

fn reply_with(content: Vec<ContentBlock>) -> AgentMessage {
    let usage =
        Usage { input: Some(1_000), output: Some(50), cost_usd: Some(0.01), ..Usage::default() };
    AgentMessage::Assistant(AssistantMessage {
        usage: Some(usage),
        ..AssistantMessage::new(content, "p".into(), "sonnet-4".into(), 1)
    })
}

pub(crate) fn result(id: &str, text: &str) -> AgentMessage {
    let content = vec![ContentBlock::text(text)];
    AgentMessage::FunctionResult(FunctionResultMessage::new(id.into(), "read".into(), content, 1))
}

/// A server of the real program; ended when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Server {
    /// Its log is `server.log` in the place.
    #[allow(clippy::disallowed_methods, reason = "a test may")]
    pub(crate) fn start(place: &Place) -> Self {
        let mut child = place
            .command(&["serve", "--listen", "127.0.0.1:0", "--bus", "off"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(place.file("server.log")).unwrap())
            .spawn()
            .unwrap();
        let out = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut lines = std::io::BufRead::lines(out).map_while(Result::ok);
        let line = lines.find(|line| line.contains("http://")).unwrap();
        let address = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
        let address = address.to_owned();
        // Kept open, so that the server can go on printing.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    /// Sends a request, expects it to succeed, and reads the JSON of the answer.
    pub(crate) fn http(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let host = self.address.strip_prefix("http://").unwrap();
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 20"), "{path}: {answer}");
        let body = &answer[answer.find('{').unwrap()..=answer.rfind('}').unwrap()];
        serde_json::from_str(body).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The first file below a folder whose name ends so.
#[allow(clippy::disallowed_methods, reason = "a test may")]
pub(crate) fn find(folder: &std::path::Path, ending: &str) -> std::path::PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == ending) {
                return path;
            }
        }
    }
    panic!("no .{ending} file");
}
