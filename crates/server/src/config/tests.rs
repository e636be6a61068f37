//! How a configuration is put together, and what is refused.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::*;

fn nothing_set(_: &str) -> Option<String> {
    None
}

fn read(text: &str) -> Config {
    parse(text, &nothing_set).unwrap()
}

fn refusal(text: &str) -> String {
    match parse(text, &nothing_set) {
        Err(error) => error.to_string(),
        Ok(config) => config.check().unwrap_err().to_string(),
    }
}

#[test]
fn the_documented_file_is_the_default() {
    assert_eq!(read(DOCUMENTED_FILE), Config::default());
    assert_eq!(read(""), Config::default());
    Config::default().check().unwrap();
}

#[test]
fn each_adapter_is_a_name_and_its_config() {
    let adapter = |text: &str| read(text).adapter;
    assert_eq!(adapter("adapter: {name: native}"), AdapterConfig::default());
    assert_eq!(adapter("adapter: {name: fs}"), AdapterConfig::Fs(FsConfig::default()));
    assert_eq!(
        adapter("adapter: {name: memory, config: {}}"),
        AdapterConfig::Memory(MemoryConfig {})
    );
    let bridge = adapter("adapter: {name: bridge, config: {url: 'ws://main:1'}}");
    let expected = BridgeConfig { url: "ws://main:1".into(), timeout_ms: 5000, token: None };
    assert_eq!(bridge, AdapterConfig::Bridge(expected));
}

#[test]
fn unknown_and_missing_fields_are_refused_by_their_place() {
    let check = |text: &str, place: &str| {
        let error = refusal(text);
        assert!(error.contains(place), "{error}");
    };
    check("listne: x", "unknown field `listne`");
    check("limits: {bodybytes: 1}", "limits");
    check("adapter: {name: fs, config: {dir: x}}", "unknown field `dir`");
    check("adapter: {name: fs, conf: {}}", "conf");
    check("adapter: {name: s3}", "unknown variant `s3`");
    check("adapter: {name: bridge}", "missing field `url`");
    check("max_list_limit: many", "max_list_limit");
    check("retention: {trash: 1w}", "is not a length of time");
}

#[test]
fn values_that_make_no_sense_are_refused() {
    let check = |text: &str, words: &str| {
        let error = refusal(text);
        assert!(error.contains(words), "{error}");
    };
    check("max_list_limit: 0", "max_list_limit");
    check("listen: nowhere", "HOST:PORT");
    check("listen: ':7717'", "HOST:PORT");
    check("bus: '1.2.3.4'", "HOST:PORT");
    check("engine: 'http://x'", "ws://HOST:PORT");
    check("adapter: {name: bridge, config: {url: ''}}", "ws://HOST:PORT");
    check("adapter: {name: bridge, config: {url: 'wss://x:1'}}", "tunnel");
    check("adapter: {name: bridge, config: {url: 'ws://x:1', timeout_ms: 0}}", "needs some time");
    for port in ["99999", "65536", "0", "x", ""] {
        let bridge = format!("adapter: {{name: bridge, config: {{url: 'ws://x:{port}'}}}}");
        check(&bridge, "from 1 to 65535");
        check(&format!("engine: 'ws://[::1]:{port}'"), "`engine`");
    }
    for rest in ["/#part", "?token=secret"] {
        check(&format!("adapter: {{name: bridge, config: {{url: 'ws://x:1{rest}'}}}}"), "`#`");
    }
    let with_user = "adapter: {name: bridge, config: {url: 'ws://me:secret@x:1'}}";
    check(with_user, "no user or password");
    assert!(!refusal(with_user).contains("secret"));
    check("adapter: {name: fs, config: {data_dir: ' '}}", "name a directory");
    check("allow: {origins: ['*']}", "scheme and host");
    check("allow: {hosts: ['a:80']}", "without scheme, port");
    check("limits: {streams: 0}", "nothing could be served");
    check("limits: {request_timeout: forever}", "must end");
}

#[test]
fn placeholders_come_from_the_environment() {
    let lookup = |name: &str| (name == "PAGES").then(|| "7".to_owned());
    let config =
        parse("max_list_limit: ${PAGES:500}\ndefault_list_limit: ${OTHER:3}", &lookup).unwrap();
    assert_eq!((config.max_list_limit, config.default_list_limit), (7, 3));
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, name) = beside(&dir.path().join("b.yaml")).unwrap();
    let file = disk.create(&name).unwrap();
    file.write_at(0, b"listen: '127.0.0.1:1'\nbus: '127.0.0.1:2'\nengine: 'ws://file:1'\n")
        .unwrap();
    let path = dir.path().join("b.yaml");
    let lookup = |name: &str| match name {
        "BOUGH_CONFIG" => Some(path.to_string_lossy().into_owned()),
        "BOUGH_BUS" => Some("off".to_owned()),
        "BOUGH_LISTEN" => Some("127.0.0.1:3".to_owned()),
        "HOME" => Some("/home/u".to_owned()),
        _ => None,
    };
    let flags = Overrides {
        listen: Some("127.0.0.1:4".to_owned()),
        data_dir: Some(PathBuf::from("/data")),
        ..Overrides::default()
    };
    let loaded = load(&flags, &lookup).unwrap();
    assert_eq!(loaded.config.listen, "127.0.0.1:4");
    assert_eq!(loaded.config.bus, "off");
    assert_eq!(loaded.config.engine.as_deref(), Some("ws://file:1"));
    assert_eq!(loaded.data_dir, Path::new("/data"));
    assert_eq!(loaded.file.as_deref(), Some(path.as_path()));
}

#[test]
fn a_file_that_somebody_named_must_exist_and_another_need_not() {
    let dir = tempfile::tempdir().unwrap();
    let flags = Overrides { data_dir: Some(dir.path().to_owned()), ..Overrides::default() };
    let loaded = load(&flags, &nothing_set).unwrap();
    assert_eq!((loaded.file, loaded.watched), (None, dir.path().join(CONFIG_FILE)));
    let flags = Overrides { config: Some(dir.path().join("none.yaml")), ..flags };
    assert!(matches!(load(&flags, &nothing_set), Err(ConfigError::Read { .. })));
}

#[test]
fn what_is_shown_can_be_read_and_holds_no_secret() {
    let config = read("adapter: {name: bridge, config: {url: 'ws://m:1', token: 'bough_secret'}}");
    let loaded = Loaded {
        config: config.clone(),
        data_dir: PathBuf::from("/data"),
        file: None,
        watched: PathBuf::from("/data/config.yaml"),
    };
    let text = show(&loaded);
    assert!(
        !text.contains("bough_secret") && !format!("{config:?}").contains("bough_secret"),
        "{text}"
    );
    let again = read(&text);
    assert_eq!(again.data_dir.as_deref(), Some("/data"));
    assert_eq!(again.limits, config.limits);
}

#[test]
fn the_engine_holds_the_adapter_and_the_list_limits() {
    let value =
        json!({"adapter": {"name": "fs", "config": {"data_dir": "/d"}}, "max_list_limit": 9});
    let worker = parse_worker(value, &nothing_set).unwrap();
    assert_eq!(worker.max_list_limit, 9);
    let config = Config::default().with_worker(worker.clone());
    assert_eq!(config.worker(), worker);
    for bad in [
        json!({"listen": "x"}),
        json!({"adapter": {"name": "bridge"}}),
        json!({"max_list_limit": 0}),
    ] {
        assert!(parse_worker(bad, &nothing_set).is_err());
    }
}

#[test]
fn a_tilde_is_the_home_directory() {
    let lookup = |name: &str| (name == "HOME").then(|| "/home/u".to_owned());
    let check =
        |text: &str, expected: &str| assert_eq!(expand_home(text, &lookup), Path::new(expected));
    check("~/.iii/data", "/home/u/.iii/data");
    check("~", "/home/u");
    check("~other/x", "~other/x");
    check("/a/~", "/a/~");
}

#[test]
fn loopback_is_known_by_name_and_number() {
    let check = |text: &str, expected: bool| {
        assert_eq!(Address::parse("listen", text).unwrap().is_loopback(), expected, "{text}");
    };
    check("127.0.0.1:1", true);
    check("127.9.9.9:1", true);
    check("[::1]:1", true);
    check("[::ffff:127.0.0.1]:1", true);
    check("LocalHost:1", true);
    check("0.0.0.0:1", false);
    check("[::]:1", false);
    check("192.168.0.1:1", false);
    check("bough.example:1", false);
}

/// Why a configuration is not used is shown to every reader of `session::config-status`.
#[test]
fn a_refusal_does_not_tell_secrets() {
    let bridge = |lines: &str| format!("adapter:\n  name: bridge\n  config:\n{lines}");
    let url = "    url: \"ws://main.example:49134\"\n";
    let files = [
        bridge(&format!("{url}    token: \"SECRET\" extra\n")),
        bridge(&format!("{url}    token: [\"SECRET\"]\n    timeout_ms: \"SECRET\"\n")),
        bridge(&format!("{url}    timeout_ms: \"SECRET, expected u64\"\n")),
        bridge(&format!("{url}    token: \"SECRET${{X\"\n")),
        bridge("    url: \"wss://user:SECRET@main.example:49134\"\n"),
        bridge("    url: \"http://user:SECRET@main.example/?key=SECRET\"\n"),
        bridge("    url: \"user:SECRET@main example\"\n"),
        "engine: \"http://user:SECRET@main.example\"\n".to_owned(),
    ];
    for file in files {
        let parsed = parse(&file, &|_| None).and_then(|config| config.check());
        let reason = parsed.unwrap_err().to_string();
        assert!(!reason.contains("SECRET"), "{reason}");
    }
}

#[test]
fn a_bus_that_is_off_may_be_written_as_people_do() {
    for text in ["bus: off", "bus: \"off\"", "bus: false", "bus: ${NONE:off}"] {
        let config = read(text);
        config.check().unwrap();
        assert_eq!(config.bus, "off", "{text}");
    }
    assert!(refusal("bus: true").contains("`bus`"));
}

#[test]
fn a_server_open_to_the_network_is_refused_before_the_start() {
    let check = |text: &str, has_tokens: bool| read(text).check_exposure(has_tokens);
    for open in ["listen: 0.0.0.0:7717", "listen: '[::]:7717'", "bus: 192.168.0.7:1"] {
        let refused = check(open, false).unwrap_err().to_string();
        assert!(refused.contains("bough token create"), "{refused}");
        check(open, true).unwrap();
        check(&format!("{open}\ntokens: {{required: true}}"), false).unwrap();
    }
    for shut in ["", "bus: off", "listen: localhost:1", "listen: '[::1]:7717'"] {
        check(shut, false).unwrap();
    }
}
