//! The promises of [`tickwheel_core::ports::WorkflowStore`], each as a rule that can be broken.
//!
//! ```text
//! async fn fresh() -> (Arc<dyn Store>, TempDir) { … }
//! tickwheel_testkit::workflow_conformance!(fresh);
//! ```
//! Stamped like the [suite of the jobs](super::store), into a module `workflows`; the rules need the jobs of the same
//! store too.
//!
//! Deliberately not here: what a run does next; that is decided by the core, without a store.

pub(super) mod bench;
pub mod by_hand;
pub mod changing;
pub mod counting;
pub mod definitions;
pub mod pausing;
pub mod reading;
pub mod reconcile_requests;
pub mod starting;
pub mod stepping;

/// Stamps one test a rule for the stores that `$factory` makes: an async function without arguments that returns
/// `(Arc<dyn Store>, impl Sized)`.
#[macro_export]
macro_rules! workflow_conformance {
    ($factory:expr) => {
        mod workflows {
            #[allow(unused_imports, reason = "the factory may be named by a path of its own")]
            use super::*;
            $crate::stamp_rules! { $factory; workflows;
                definitions {
                    every_field_of_a_workflow_survives,
                    a_changed_definition_is_the_next_version_and_the_former_ones_stay,
                    the_same_definition_again_is_no_new_version,
                    a_name_belongs_to_its_tenant,
                    the_latest_versions_are_listed_by_name_in_pages_of_any_size,
                    versions_are_listed_the_latest_first,
                    many_who_define_at_once_make_a_version_each,
                    a_removed_workflow_is_gone_but_its_versions_stay,
                    what_is_stored_after_a_removal_is_the_next_version_even_if_it_says_the_same,
                    only_what_is_there_can_be_removed,
                    removed_workflows_are_left_out_of_lists_in_pages_of_any_size,
                    of_many_who_remove_a_workflow_one_does,
                }
                starting {
                    every_field_of_a_run_survives,
                    all_of_a_run_is_there_once_it_has_started,
                    the_queues_of_a_run_become_known,
                    a_run_that_exists_is_not_started_again,
                    the_same_request_again_is_answered_with_its_run,
                    many_who_start_under_one_key_start_one_run,
                    a_run_whose_job_exists_already_leaves_no_trace,
                    only_runs_that_exist_are_found,
                    a_large_run_is_stored_whole,
                }
                counting {
                    the_last_parent_that_completes_lets_a_task_go,
                    a_task_of_the_reconciler_is_requested_when_none_of_its_parents_is_open,
                    a_watched_task_is_requested_whenever_a_parent_ends,
                    a_failed_parent_leaves_a_task_pending_and_requests_a_reconcile_of_the_run,
                    open_jobs_are_counted_down_and_the_last_one_requests_a_reconcile,
                    a_run_with_nothing_but_blocked_jobs_open_is_reconciled,
                    a_batch_counts_all_its_ends_and_every_run_for_itself,
                    a_settlement_that_is_repeated_counts_once,
                    an_attempt_that_goes_again_counts_nothing,
                    jobs_outside_of_workflows_request_no_reconcile,
                    a_job_that_depends_on_a_task_is_released_by_it,
                    a_task_and_a_job_outside_of_its_run_are_released_by_the_same_end,
                    an_end_that_is_refused_releases_nobody_and_is_not_counted,
                    after_a_failure_elsewhere_what_waits_for_completed_tasks_still_goes,
                    parents_that_end_at_the_same_moment_are_all_counted,
                }
                reconcile_requests {
                    reading_takes_nothing_off_the_list,
                    what_was_reconciled_is_off_the_list,
                    what_was_asked_for_meanwhile_stays_on_the_list,
                    a_request_that_was_done_and_made_again_is_another_one,
                    a_step_can_request_a_reconcile,
                    no_more_requests_are_read_than_asked_for,
                    requests_are_read_in_the_order_of_their_runs,
                }
                stepping {
                    progress_is_written_and_the_revision_grows,
                    a_step_without_progress_leaves_the_revision,
                    a_step_of_another_revision_changes_nothing_at_all,
                    a_step_of_an_unknown_run_is_stale,
                    a_stale_step_leaves_the_others_alone,
                    steps_of_one_run_in_one_batch_are_carried_out_in_order,
                    of_many_who_decide_on_one_revision_one_wins,
                    steps_and_settlements_at_the_same_moment_are_all_counted,
                    notices_become_callbacks,
                    what_is_notified_of_a_start_is_notified_once,
                    new_jobs_are_stored_and_counted,
                }
                changing {
                    a_released_task_is_due_and_runs,
                    a_task_is_blocked_and_unblocked,
                    a_fan_out_counts_its_items_until_it_is_joined,
                    more_items_are_released_without_being_counted_anew,
                    items_are_made_in_several_steps,
                    a_task_that_is_ended_counts_like_one_that_ran,
                    an_ended_task_is_in_history_in_its_state,
                    a_running_task_is_asked_to_stop,
                    a_task_that_awaits_a_report_ends_at_once,
                    a_task_that_begins_anew_waits_for_what_it_depends_on,
                    what_does_not_apply_is_left_out_and_requests_a_reconcile,
                    a_retried_task_is_waited_for_again,
                    tasks_that_come_back_together_count_each_other,
                    a_retried_fan_out_counts_its_items,
                    a_failed_task_can_be_completed_in_one_step,
                    a_large_step_is_carried_out_whole,
                    a_task_that_waits_for_a_retry_can_be_ended,
                }
                pausing {
                    nothing_of_a_paused_run_is_loaded_or_claimed_until_it_is_resumed,
                    what_a_paused_run_releases_waits_for_its_resume,
                    a_retry_of_a_paused_run_waits_for_its_resume,
                    a_paused_run_that_has_ended_is_paused_no_more,
                    a_task_that_is_brought_back_leaves_its_run_paused,
                    a_pause_of_another_revision_pauses_nothing,
                    nothing_is_claimed_after_a_pause_was_acknowledged,
                }
                by_hand {
                    a_cancelled_task_is_open_no_more_and_the_run_is_reconciled,
                    a_running_task_that_is_asked_to_stop_is_still_open,
                    a_fan_out_cannot_be_cancelled_alone,
                    a_retried_task_makes_its_run_go_on,
                    a_retried_task_that_never_ran_waits_for_the_reconciler,
                    a_task_that_is_held_or_edited_changes_nothing_for_its_run,
                }
                reading {
                    a_run_is_read_with_all_its_tasks_in_order,
                    a_run_is_read_with_the_beginnings_of_long_errors,
                    results_are_read_in_order_until_there_are_too_many_bytes,
                    values_that_payloads_refer_to_are_found,
                    the_borders_of_a_run_belong_to_it,
                    the_jobs_of_a_run_are_listed,
                    runs_are_listed_the_latest_first_by_what_they_are,
                    runs_that_may_stall_are_found_when_it_is_time,
                    of_many_runs_those_that_have_ended_are_told,
                }
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
            ("definitions", include_str!("definitions.rs")),
            ("starting", include_str!("starting.rs")),
            ("counting", include_str!("counting.rs")),
            ("reconcile_requests", include_str!("reconcile_requests.rs")),
            ("stepping", include_str!("stepping.rs")),
            ("changing", include_str!("changing.rs")),
            ("pausing", include_str!("pausing.rs")),
            ("by_hand", include_str!("by_hand.rs")),
            ("reading", include_str!("reading.rs")),
        ];
        assert_stamped(include_str!("mod.rs"), &groups);
    }
}
