//! Responses of the APIs that answer with a list: each answer holds a message.

use super::Format;
use super::block::kept_members;
use super::read::{Members, list};
use super::write::{Object, own_members, set_members, take_members, to_json};
use crate::members::UnknownMembers;
use crate::{AssistantMessage, RawJson};

/// Under this name a message keeps the members of the response.
const RESPONSE: &str = "$response";

/// The names in one API's response.
pub(super) struct ResponseNames {
    pub(super) format: Format,
    /// The list of answers.
    pub(super) answers: &'static str,
    /// The message of an answer.
    pub(super) message: &'static str,
    /// Under this name a message keeps the members of the first answer.
    pub(super) first: &'static str,
}

/// A response being read. Only its first answer becomes a message.
pub(super) struct Response<'a> {
    names: &'static ResponseNames,
    pub(super) members: Members<'a>,
    pub(super) first: Members<'a>,
    others: UnknownMembers,
}

/// The members that a message keeps of its response.
pub(super) struct KeptResponse {
    pub(super) members: UnknownMembers,
    first: UnknownMembers,
    others: Option<RawJson>,
}

impl ResponseNames {
    /// The response and the message in it, if its first answer has one; `None` if it has no answer.
    pub(super) fn read<'a>(
        &'static self,
        mut members: Members<'a>,
    ) -> Option<(Response<'a>, Option<Members<'a>>)> {
        let mut answers = members.take_list(self.answers)?;
        let mut first = Members::of(answers.first()?)?;
        let message = first.take_object(self.message);
        let mut others = UnknownMembers::NONE;
        if answers.len() > 1 {
            answers.remove(0);
            others.set(self.answers, to_json(&answers));
        }
        Some((Response { names: self, members, first, others }, message))
    }

    /// Keeps with the reply the members of a response without answers.
    pub(super) fn keep_in(&self, members: Members<'_>, reply: &mut AssistantMessage) {
        let mut kept = UnknownMembers::NONE;
        set_members(&mut kept, RESPONSE, &members.into_unknown());
        reply.unknown = kept_members(self.format, kept);
    }

    /// Takes the members of the response out of what a message keeps.
    pub(super) fn take_kept(&self, kept: &mut UnknownMembers) -> KeptResponse {
        let mut members = take_members(kept, RESPONSE);
        let first = take_members(kept, self.first);
        KeptResponse { others: members.remove(self.answers), members, first }
    }
}

impl Response<'_> {
    /// Keeps with the reply the members that were not taken.
    pub(super) fn keep_in(self, reply: &mut AssistantMessage) {
        let mut kept = own_members(self.names.format, &reply.unknown);
        let mut members = self.members.into_unknown();
        members.extend(self.others);
        set_members(&mut kept, RESPONSE, &members);
        set_members(&mut kept, self.names.first, &self.first.into_unknown());
        reply.unknown = kept_members(self.names.format, kept);
    }
}

impl KeptResponse {
    /// The list of answers: this one, and the others as they came.
    pub(super) fn answers(&mut self, first: Object) -> Vec<RawJson> {
        let mut answers = vec![first.with_kept(std::mem::take(&mut self.first))];
        let others = self.others.as_ref().and_then(|others| list(others.raw()));
        answers.extend(others.unwrap_or_default().into_iter().map(RawJson::from));
        answers
    }
}
