//! One suite that every adapter passes: a core, and what an adapter declares beyond it.
//!
//! A test of an adapter implements [`Factory`] and calls [`run_all`]. A case that fails panics with its
//! name and what it saw.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a case fails by panicking")]

mod appends;
mod feeds;
mod lifecycle;
mod lists;
mod make;
mod paths;
mod point_in_time;
mod replace;
mod streams;
mod usage;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;

use crate::Store;

/// Makes the stores that the suite runs on.
#[async_trait]
pub trait Factory: Send + Sync {
    /// A store with nothing in it.
    async fn fresh(&self) -> Arc<dyn Store>;

    /// Closes a store that [`fresh`](Self::fresh) or this made, and opens its data again. An adapter that
    /// does not survive a restart is never asked.
    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store>;
}

type CaseFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// One promise of the [`Store`] trait, as a test.
pub struct Case {
    /// The promise.
    pub name: &'static str,
    run: for<'a> fn(&'a dyn Factory) -> CaseFuture<'a>,
}

impl Case {
    /// Checks the promise on stores of a factory.
    pub async fn run(&self, factory: &dyn Factory) {
        (self.run)(factory).await;
    }
}

macro_rules! cases {
    ($($module:ident :: $name:ident),* $(,)?) => {
        vec![$(Case {
            name: stringify!($name),
            run: |factory| Box::pin($module::$name(factory)),
        }),*]
    };
}

/// Every case of the suite.
#[must_use]
pub fn cases() -> Vec<Case> {
    cases![
        appends::a_session_begins_with_its_meta_and_only_once,
        appends::an_append_needs_the_head_and_a_conflict_carries_it,
        appends::what_is_not_there_is_not_found,
        appends::batches_on_their_way_build_on_each_other,
        appends::writers_that_retry_land_exactly_once_each,
        appends::empty_and_oversized_batches_are_refused,
        appends::records_come_back_in_order_from_any_position,
        appends::every_kind_of_record_survives,
        appends::unknown_records_survive_byte_for_byte,
        appends::everything_is_there_after_a_restart,
        paths::a_path_goes_on_after_a_very_large_entry,
        paths::a_path_is_read_in_pages_from_both_ends,
        paths::a_branch_is_read_by_its_leaf,
        paths::starts_off_the_path_are_refused,
        paths::heads_are_the_ends_of_branches,
        paths::heads_come_in_pages,
        paths::a_leaf_move_decides_the_path,
        streams::steps_of_a_stream_are_shown_in_order,
        streams::a_step_from_another_revision_is_refused,
        streams::steps_and_records_live_side_by_side,
        streams::steps_are_there_after_a_restart,
        streams::step_numbers_never_start_again,
        streams::a_large_step_is_taken_like_a_small_one,
        streams::a_revision_past_a_stream_is_news,
        point_in_time::streams_side_by_side_become_records_in_the_order_of_their_last_steps,
        point_in_time::no_step_is_left_behind_a_record,
        point_in_time::an_entry_is_shown_as_it_was,
        point_in_time::a_session_is_shown_as_it_was,
        lifecycle::a_deleted_session_is_gone_and_can_come_back,
        lifecycle::a_new_life_knows_nothing_of_the_old,
        lifecycle::what_is_purged_stays_gone,
        lifecycle::odd_names_do_not_meet,
        lists::lists_are_in_the_order_asked_for,
        lists::lists_show_what_matches,
        lists::cursors_go_through_all_pages,
        lists::a_session_that_moves_is_returned_at_least_once,
        lists::foreign_cursors_are_refused,
        replace::a_session_is_replaced_where_it_ends_as_expected,
        replace::records_are_read_by_their_numbers,
        replace::documents_are_not_listed,
        usage::sums_are_kept_apart_as_asked,
        usage::a_deleted_session_is_no_longer_summed,
        feeds::watches_wake_for_what_is_durable,
        feeds::changes_are_read_from_a_cursor,
        feeds::a_cursor_of_another_epoch_is_a_gap,
    ]
}

/// Runs every case of the suite.
pub async fn run_all(factory: &dyn Factory) {
    for case in cases() {
        case.run(factory).await;
    }
}
