//! The promises of [`tickwheel_core::ports::Store`], each as a rule that can be broken.
//!
//! ```text
//! async fn fresh() -> (Arc<dyn Store>, TempDir) { … }
//! tickwheel_testkit::store_conformance!(fresh);
//! ```
//! The factory gives an empty store and whatever has to outlive it (a directory, a database, or `()`). The crate that
//! stamps the suite needs tokio with its macros.
//!
//! Deliberately not here: durability across a crash, and what only one store promises; those tests live with that
//! store.

pub(super) mod bench;
pub mod blocking;
pub mod callbacks;
pub mod changes;
pub mod claiming;
pub mod controls;
pub mod dead_letters;
pub mod dependencies;
pub mod lists;
pub mod loading;
pub mod logs;
pub mod once;
pub mod progress;
pub mod random;
pub mod sessions;
pub mod settling;
pub mod submission;
pub mod workers;

/// Stamps one test a rule for the stores that `$factory` makes: an async function without arguments that returns
/// `(Arc<dyn Store>, impl Sized)`.
#[macro_export]
macro_rules! store_conformance {
    ($factory:expr) => {
        $crate::stamp_rules! { $factory; store;
            submission {
                every_field_of_a_job_survives,
                a_job_with_nothing_optional_survives,
                a_payload_of_256_kib_survives,
                a_job_can_be_submitted_in_every_waiting_state,
                a_job_that_repeats_a_tag_is_stored,
                a_large_batch_is_stored_whole,
                an_empty_batch_is_answered_with_nothing,
                a_refused_batch_leaves_no_trace,
                a_repeated_key_is_answered_with_its_job_as_it_is_now,
                the_same_submission_sent_again_is_answered_with_its_job,
                a_job_that_was_seen_before_is_not_stored,
                the_same_key_with_another_request_is_a_conflict,
                the_same_key_of_another_tenant_is_another_key,
                a_batch_is_answered_in_order_and_knows_its_own_keys,
                many_who_submit_one_key_at_once_create_one_job,
            }
            loading {
                due_jobs_come_in_the_order_of_time_then_id,
                a_cursor_and_a_limit_give_every_due_job_once,
                what_is_due_after_the_horizon_stays_in_the_store,
                each_priority_is_loaded_by_itself,
                only_the_partitions_asked_for_are_loaded,
                only_the_kinds_of_target_asked_for_are_loaded,
                jobs_for_workers_are_loaded_by_route_and_no_others,
                commands_and_calls_that_require_labels_are_for_workers,
                only_scheduled_jobs_are_loaded,
                a_paused_queue_is_not_loaded_until_it_is_resumed,
            }
            claiming {
                a_claim_starts_the_first_attempt,
                the_attempt_number_grows_and_the_previous_error_stays_visible,
                nothing_is_claimed_before_its_time,
                only_scheduled_jobs_are_claimed,
                a_paused_queue_gives_nothing_until_it_is_resumed,
                nothing_is_claimed_while_halted,
                a_session_that_ended_or_never_was_claims_nothing,
                an_empty_claim_takes_nothing,
                a_large_claim_takes_all_that_may_start,
                no_job_goes_to_two_claimants,
                a_cancel_and_a_claim_never_both_win,
                an_acknowledged_halt_stops_claims_that_are_under_way,
            }
            settling {
                a_completed_job_keeps_its_result_and_the_real_start,
                a_job_may_complete_without_a_result,
                completion_clears_the_error_of_earlier_attempts,
                a_failed_job_is_a_dead_letter_with_its_reason,
                a_running_job_can_end_cancelled,
                a_job_that_goes_again_waits_for_its_retry,
                an_attempt_that_was_never_sent_leaves_no_trace,
                every_outcome_is_kept_as_it_was,
                a_settlement_of_another_attempt_changes_nothing,
                a_settlement_of_a_job_that_is_not_running_changes_nothing,
                a_settlement_of_an_unknown_job_is_stale,
                a_second_settlement_is_stale,
                of_two_settlements_in_one_batch_one_is_applied,
                many_who_settle_one_attempt_at_once_end_it_once,
                a_batch_is_answered_in_order,
                a_large_batch_is_settled_whole,
                a_job_that_somebody_wants_cancelled_does_not_go_again,
                a_job_that_ends_by_itself_ends_so_whatever_was_asked,
                a_stale_settlement_is_stale_even_if_a_cancel_is_wanted,
                an_attempt_that_awaits_a_report_runs_on_without_a_session,
                awaiting_a_report_of_another_attempt_changes_nothing,
                a_job_that_awaits_a_report_is_cancelled_at_once,
                an_attempt_that_somebody_wants_to_end_does_not_go_on_elsewhere,
                the_history_of_attempts_is_complete,
                an_unknown_job_has_no_history,
            }
            sessions {
                a_session_is_renewed_until_it_ends,
                ending_a_session_twice_is_harmless,
                a_session_whose_lease_is_over_is_ended_by_another,
                nobody_ends_his_own_session_by_expiry,
                a_renewed_lease_counts_from_its_new_end,
                the_attempts_of_an_ended_session_are_abandoned,
                the_attempts_of_an_expired_session_are_abandoned,
                an_attempt_past_its_deadline_and_the_grace_is_abandoned,
                an_attempt_that_awaits_a_report_is_abandoned_only_past_its_deadline,
                an_attempt_that_is_over_is_not_abandoned,
                abandoned_attempts_of_every_priority_are_found_up_to_the_limit,
            }
            workers {
                a_worker_is_renewed_until_it_leaves,
                the_same_instance_is_the_same_session,
                workers_are_listed_by_id_and_nodes_are_not_among_them,
                a_worker_whose_lease_is_over_is_ended_and_its_attempts_are_abandoned,
                what_a_node_claimed_for_a_worker_is_not_another_nodes,
                an_attempt_of_a_worker_that_awaits_a_report_ends_by_report_or_deadline,
                a_worker_that_may_not_have_been_heard_gets_a_whole_lease,
                what_a_worker_runs_is_known_until_it_has_ended,
                a_worker_hears_what_it_is_to_stop,
                an_attempt_of_a_worker_past_its_deadline_is_abandoned,
                a_job_goes_from_one_worker_to_the_next,
                a_retried_job_is_found_by_its_route_again,
                due_jobs_of_routes_are_counted_up_to_a_limit,
                routes_that_no_live_job_has_are_removed,
                a_job_that_comes_back_has_its_route_again,
                a_route_is_not_removed_while_a_job_comes_with_it,
            }
            changes {
                an_unknown_job_cannot_be_changed,
                a_change_the_state_does_not_allow_is_refused,
                a_waiting_job_that_is_cancelled_has_ended,
                a_job_cancelled_while_it_waits_for_a_retry_keeps_its_history,
                a_running_job_is_asked_to_stop,
                cancelling_a_cancelled_job_changes_nothing,
                many_who_cancel_one_job_at_once_cancel_it_once,
                a_paused_job_waits_until_it_is_resumed,
                a_job_run_now_is_due_now_and_never_later_than_it_was,
                a_failed_job_can_be_run_again_with_another_payload,
                a_cancelled_job_can_be_run_again,
                a_retried_job_has_all_its_retries_again,
                every_field_of_an_edit_is_in_force,
                an_edit_leaves_what_it_does_not_name,
                an_edit_can_hold_a_job_and_let_it_go,
                edits_at_the_same_time_do_not_undo_each_other,
                of_many_jobs_those_that_have_ended_are_told,
            }
            lists {
                live_and_finished_jobs_are_listed_together_newest_first,
                pages_of_any_size_have_no_gaps_and_no_repeats,
                a_page_ends_when_it_has_enough_bytes,
                a_list_leaves_out_what_is_not_asked_for,
                jobs_that_end_between_two_pages_keep_their_place,
                jobs_are_found_by_every_state,
                jobs_are_found_by_their_type,
                jobs_are_found_by_their_queue,
                jobs_are_found_by_their_tenant,
                jobs_are_found_by_the_schedule_that_made_them,
                jobs_are_found_by_their_priority,
                jobs_are_found_by_each_of_their_tags,
                jobs_are_found_by_several_states_at_once,
                jobs_are_found_by_several_tags_at_once,
                tags_follow_the_job_through_edit_end_and_retry,
                jobs_are_found_by_the_time_of_their_creation,
                all_conditions_of_a_query_hold_together,
            }
            dead_letters {
                only_jobs_that_were_given_up_are_dead_letters,
                the_latest_dead_letter_comes_first,
                a_page_of_dead_letters_ends_when_it_has_enough_bytes,
                dead_letters_are_found_by_type_and_queue,
                dead_letters_are_counted_as_they_are_found,
                a_discarded_dead_letter_stays_in_history,
                a_redriven_job_that_fails_again_is_a_new_dead_letter,
            }
            dependencies {
                a_job_waits_until_its_parent_completes,
                a_released_job_runs_like_any_other,
                a_job_requested_for_later_is_released_for_its_time,
                the_last_of_several_parents_releases,
                parents_that_end_in_one_batch_release_once,
                parents_that_have_completed_hold_nobody_up,
                an_unknown_parent_is_refused_and_the_others_are_stored,
                a_parent_of_another_tenant_is_unknown,
                a_parent_named_twice_counts_once,
                a_repeated_submission_makes_no_second_edge,
                a_settlement_that_is_repeated_counts_once,
                of_two_ends_of_a_parent_in_one_batch_one_counts,
                an_end_that_is_refused_counts_for_nobody,
                a_parent_that_goes_again_releases_nobody,
                a_cancelled_child_is_not_released,
                jobs_that_wait_for_others_are_neither_loaded_nor_claimed,
                jobs_that_wait_for_others_are_found_by_their_state,
                an_edit_of_a_waiting_job_is_in_force_when_it_is_released,
                many_children_of_many_parents_are_released_together,
                parents_that_end_at_the_same_moment_release_each_child_once,
                a_parent_that_ends_while_its_child_is_submitted_is_counted_once,
            }
            blocking {
                one_that_completes_and_one_that_fails_in_one_batch_block,
                a_parent_that_has_ended_badly_blocks_from_the_start,
                a_parent_that_fails_or_is_stopped_blocks_its_children,
                a_parent_cancelled_while_it_waits_blocks_its_children_and_no_further,
                a_retried_parent_is_waited_for_again,
                of_two_failed_parents_both_have_to_be_retried,
                a_parent_can_fail_and_be_retried_any_number_of_times,
                a_retried_child_counts_its_parents_as_they_stand_then,
                a_retried_child_of_a_retried_parent_is_released_by_it,
                a_chain_is_taken_up_where_it_broke,
                a_parent_that_is_retried_while_its_child_is_submitted_is_waited_for,
                a_child_that_is_retried_while_its_parent_ends_is_told_of_it,
            }
            callbacks {
                every_end_is_told,
                nothing_is_told_unless_a_job_ended_and_somebody_wants_to_know,
                a_callback_is_due_when_the_job_ended,
                a_callback_that_was_taken_is_not_given_to_another,
                nothing_is_taken_for_a_session_that_has_ended,
                the_callbacks_of_an_ended_session_are_given_back,
                what_its_own_session_is_not_sending_is_given_back,
                a_callback_is_tried_again_when_told_so,
                a_late_sender_does_not_put_off_a_callback_that_another_sends,
                a_callback_that_is_over_is_never_taken_again,
                every_try_is_on_record,
                an_outcome_can_be_told_once_more,
                of_many_tries_the_latest_are_kept,
                no_more_callbacks_are_taken_than_asked_for,
                callbacks_are_taken_for_the_receivers_that_have_room,
                no_callback_goes_to_two_takers,
                a_retried_job_that_ends_again_has_another_callback,
            }
            logs {
                lines_are_read_as_they_were_written,
                a_line_that_is_sent_twice_is_there_once,
                each_attempt_of_each_job_has_its_own_log,
                lines_of_an_attempt_that_is_over_are_kept,
                a_job_that_does_not_exist_has_no_log,
                pages_of_a_log_have_no_gaps_and_no_repeats,
                a_page_of_a_log_ends_when_it_has_enough_bytes,
                a_long_log_loses_its_oldest_lines_and_says_so,
                a_reader_that_is_too_slow_is_told_what_it_missed,
                many_who_write_to_one_log_add_each_line_once,
            }
            progress {
                the_latest_progress_of_each_job_is_kept,
                a_new_attempt_starts_without_progress,
                the_progress_of_what_is_over_is_forgotten,
                what_does_not_exist_makes_no_progress,
            }
            once {
                the_first_who_asks_is_first_and_later_attempts_get_the_result,
                who_dies_before_it_is_done_leaves_the_key_in_doubt,
                what_did_not_happen_is_up_to_the_next,
                an_attempt_that_is_over_has_no_say,
                jobs_of_a_tenant_share_a_key,
                a_key_is_busy_as_long_as_its_holder_runs,
                of_many_who_ask_at_once_one_is_first,
                a_key_is_forgotten_after_its_time_and_removed_in_steps,
                a_result_is_remembered_for_as_long_as_was_asked_for,
            }
            controls {
                a_queue_is_known_once_it_had_a_job,
                a_queue_can_be_paused_before_its_first_job,
                a_queue_is_paused_until_it_is_resumed,
                the_due_jobs_of_a_queue_are_counted_even_while_it_is_paused,
                due_jobs_are_counted_also_if_no_worker_could_run_them,
                a_count_of_due_jobs_that_saw_too_many_says_so,
                the_stop_switch_keeps_its_position,
                all_that_forbids_starts_is_read_at_once,
                the_installation_has_one_secret_for_ever,
                a_store_that_works_answers_a_ping,
            }
        }

        mod random {
            #[allow(unused_imports, reason = "the factory may be named by a path of its own")]
            use super::*;

            #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn random_operations_are_answered_as_by_the_model() {
                use $crate::conformance::store::random;
                random::random_operations_are_answered_as_by_the_model($factory).await;
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::conformance::assert_stamped;

    #[test]
    fn every_rule_is_stamped() {
        let groups = [
            ("submission", include_str!("submission.rs")),
            ("loading", include_str!("loading.rs")),
            ("claiming", include_str!("claiming.rs")),
            ("settling", include_str!("settling.rs")),
            ("sessions", include_str!("sessions.rs")),
            ("changes", include_str!("changes.rs")),
            ("lists", include_str!("lists.rs")),
            ("dead_letters", include_str!("dead_letters.rs")),
            ("dependencies", include_str!("dependencies.rs")),
            ("blocking", include_str!("blocking.rs")),
            ("callbacks", include_str!("callbacks.rs")),
            ("logs", include_str!("logs.rs")),
            ("progress", include_str!("progress.rs")),
            ("once", include_str!("once.rs")),
            ("controls", include_str!("controls.rs")),
        ];
        assert_stamped(include_str!("mod.rs"), &groups);
    }
}
