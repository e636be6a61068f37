//! The calls that a history is made of.

use proptest::prelude::*;

/// One call, with choices that mean something in whatever state it meets.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Create {
        title: String,
        owner: Option<u8>,
    },
    Ensure {
        session: u8,
    },
    SetMeta {
        session: u8,
        title: Option<String>,
        owner: Option<u8>,
    },
    SetStatus {
        session: u8,
        status: u8,
    },
    SetTask {
        session: u8,
        task: Option<String>,
    },
    Archive {
        session: u8,
        archived: bool,
    },
    Delete {
        session: u8,
    },
    Undelete {
        session: u8,
    },
    Purge {
        session: u8,
    },
    Append {
        session: u8,
        text: String,
        custom: bool,
        parent: Choice,
        id: Option<u8>,
        leaf: LeafWish,
    },
    AppendMany {
        session: u8,
        texts: Vec<String>,
        parent: Choice,
    },
    Update {
        session: u8,
        entry: Choice,
        texts: Vec<String>,
        revision: Option<u8>,
    },
    Delta {
        session: u8,
        entry: Choice,
        block: u8,
        text: String,
    },
    SetLeaf {
        session: u8,
        entry: Choice,
    },
    Fork {
        session: u8,
        entry: Choice,
    },
    Label {
        session: u8,
        entry: Choice,
        label: Option<String>,
    },
    Reopen,
}

/// An entry of a session: the default, one of those that are there, or one that is not.
#[derive(Clone, Debug)]
pub(super) enum Choice {
    None,
    Some(prop::sample::Index),
    Ghost,
}

#[derive(Clone, Debug)]
pub(super) enum LeafWish {
    None,
    Right,
    Wrong,
}

pub(super) fn any_op() -> impl Strategy<Value = Op> {
    let session = 0_u8..6;
    let text = "[aé ]{0,5}";
    let texts = prop::collection::vec(text, 0..3);
    let owner = prop::option::of(0_u8..2);
    prop_oneof![
        3 => (text, owner.clone()).prop_map(|(title, owner)| Op::Create { title, owner }),
        2 => session.clone().prop_map(|session| Op::Ensure { session }),
        2 => (session.clone(), prop::option::of(text), owner)
            .prop_map(|(session, title, owner)| Op::SetMeta { session, title, owner }),
        2 => (session.clone(), 0_u8..4).prop_map(|(session, status)| Op::SetStatus { session, status }),
        1 => (session.clone(), prop::option::of(text)).prop_map(|(session, task)| Op::SetTask { session, task }),
        1 => (session.clone(), any::<bool>()).prop_map(|(session, archived)| Op::Archive { session, archived }),
        1 => session.clone().prop_map(|session| Op::Delete { session }),
        1 => session.clone().prop_map(|session| Op::Undelete { session }),
        1 => session.clone().prop_map(|session| Op::Purge { session }),
        8 => (session.clone(), text, any::<bool>(), any_choice(), prop::option::of(0_u8..4), any_leaf_wish())
            .prop_map(|(session, text, custom, parent, id, leaf)| Op::Append { session, text, custom, parent, id, leaf }),
        2 => (session.clone(), texts.clone(), any_choice())
            .prop_map(|(session, texts, parent)| Op::AppendMany { session, texts, parent }),
        5 => (session.clone(), any_choice(), texts, prop::option::of(0_u8..3))
            .prop_map(|(session, entry, texts, revision)| Op::Update { session, entry, texts, revision }),
        4 => (session.clone(), any_choice(), 0_u8..3, text)
            .prop_map(|(session, entry, block, text)| Op::Delta { session, entry, block, text }),
        2 => (session.clone(), any_choice()).prop_map(|(session, entry)| Op::SetLeaf { session, entry }),
        1 => (session.clone(), any_choice()).prop_map(|(session, entry)| Op::Fork { session, entry }),
        1 => (session, any_choice(), prop::option::of("[ab]{1,2}"))
            .prop_map(|(session, entry, label)| Op::Label { session, entry, label }),
        1 => Just(Op::Reopen),
    ]
}

pub(super) fn any_choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        4 => Just(Choice::None),
        4 => any::<prop::sample::Index>().prop_map(Choice::Some),
        1 => Just(Choice::Ghost),
    ]
}

pub(super) fn any_leaf_wish() -> impl Strategy<Value = LeafWish> {
    prop_oneof![4 => Just(LeafWish::None), 1 => Just(LeafWish::Right), 1 => Just(LeafWish::Wrong)]
}
