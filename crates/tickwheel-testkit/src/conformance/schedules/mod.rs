//! The promises of [`tickwheel_core::ports::ScheduleStore`], each as a rule that can be broken.
//!
//! ```text
//! async fn fresh() -> (Arc<dyn Store>, TempDir) { … }
//! tickwheel_testkit::schedule_conformance!(fresh);
//! ```
//! Stamped like the [suite of the jobs](super::store), into a module `schedules`; the rules need the jobs of the same
//! store too.
//!
//! Deliberately not here: what is to be fired and when; that is decided by the core, without a store.

pub mod backfills;
pub(super) mod bench;
pub mod calendars;
pub mod definitions;
pub mod deleting;
pub mod editing;
pub mod firing;
pub mod ledger;
pub mod made_jobs;
pub mod records;
pub mod triggering;
pub mod waking;

/// Stamps one test a rule for the stores that `$factory` makes: an async function without arguments that returns
/// `(Arc<dyn Store>, impl Sized)`.
#[macro_export]
macro_rules! schedule_conformance {
    ($factory:expr) => {
        mod schedules {
            #[allow(unused_imports, reason = "the factory may be named by a path of its own")]
            use super::*;
            $crate::stamp_rules! { $factory; schedules;
                definitions {
                    every_field_of_a_schedule_survives,
                    a_schedule_with_nothing_optional_survives,
                    an_interval_survives,
                    every_choice_of_a_schedule_survives,
                    only_schedules_that_exist_are_found,
                    a_name_is_found_only_as_it_is_written_and_where_it_belongs,
                    a_name_is_taken_once_per_tenant,
                    the_same_creation_sent_again_names_the_first,
                    many_who_create_one_name_at_once_create_one_schedule,
                    schedules_are_listed_by_name_in_pages_of_any_size,
                    schedules_are_listed_by_tenant_and_by_being_paused,
                }
                editing {
                    a_change_writes_the_spec_the_pause_and_the_progress,
                    a_change_records_what_became_of_firings_meanwhile,
                    a_change_keeps_the_record_of_a_firing_that_made_a_job,
                    a_change_does_not_rename,
                    a_change_of_another_revision_changes_nothing,
                    a_change_of_an_unknown_schedule_is_stale,
                    a_decision_made_before_a_change_is_stale,
                    of_many_changes_at_once_one_wins,
                    of_a_change_and_a_firing_at_once_one_wins,
                }
                waking {
                    schedules_wake_in_the_order_of_time_then_id,
                    a_cursor_and_a_limit_give_every_schedule_once,
                    what_wakes_after_the_horizon_stays_in_the_store,
                    only_the_partitions_asked_for_are_loaded,
                    schedules_of_every_priority_are_loaded_together,
                    a_schedule_that_never_wakes_is_never_loaded,
                    a_paused_schedule_is_loaded,
                    the_time_to_wake_follows_every_step,
                    the_time_to_wake_and_the_priority_follow_every_change,
                }
                firing {
                    a_step_writes_progress_records_and_jobs,
                    a_step_without_firings_moves_the_schedule,
                    a_decision_is_carried_out_once,
                    a_step_of_another_revision_changes_nothing,
                    a_step_of_an_unknown_schedule_is_stale,
                    of_many_who_advance_one_schedule_at_once_one_wins,
                    many_who_advance_the_same_schedules_at_once_fire_each_once,
                    a_stale_step_leaves_the_others_alone,
                    of_two_steps_on_one_revision_in_one_batch_one_is_written,
                    an_empty_batch_is_answered_with_nothing,
                    a_large_batch_is_carried_out_whole,
                    a_step_of_many_firings_is_written_whole,
                }
                records {
                    a_nominal_time_has_one_job_whatever_the_revision,
                    a_step_that_would_make_a_second_job_changes_nothing,
                    other_schedules_have_jobs_of_the_same_nominal_time,
                    a_record_without_a_job_gives_way_to_one_with_a_job,
                    a_record_without_a_job_gives_way_to_a_later_one,
                    a_record_with_a_job_stays_whatever_comes_later,
                    several_records_may_name_one_job,
                    a_run_of_firings_is_one_record,
                }
                ledger {
                    every_outcome_and_every_reason_is_kept_as_it_was,
                    firings_are_listed_the_latest_first_in_pages_of_any_size,
                    firings_are_found_by_their_outcome,
                    firings_are_found_by_their_time,
                    the_latest_firings_of_each_schedule_are_read_at_once,
                    queued_firings_are_read_the_oldest_first_until_they_are_over,
                }
                backfills {
                    a_backfill_is_kept_as_it_was_written,
                    every_step_and_every_change_writes_the_backfill,
                    a_write_of_another_revision_leaves_the_backfill_alone,
                    the_records_of_a_range_are_read_the_oldest_first,
                    a_range_begins_after_its_first_border_and_ends_with_its_last,
                    a_run_that_reaches_into_a_range_is_among_its_records,
                    a_coalesced_record_gives_way_to_one_with_its_own_job,
                    a_coalesced_record_gives_way_to_one_without_a_job,
                    a_step_that_meets_one_job_replaces_no_other_record,
                    nothing_of_a_backfill_outlives_its_schedule,
                }
                deleting {
                    a_deleted_schedule_is_found_nowhere,
                    what_does_not_exist_cannot_be_deleted,
                    nothing_fires_after_a_delete,
                    the_jobs_of_a_deleted_schedule_stay_and_name_it,
                    a_name_is_free_again_after_a_delete,
                    a_delete_amid_firings_leaves_no_record,
                }
                triggering {
                    a_trigger_makes_a_job_and_its_record,
                    the_same_request_again_is_answered_with_its_job_as_it_is_now,
                    another_request_under_the_same_key_is_a_conflict,
                    submissions_and_triggers_share_their_keys,
                    the_same_key_of_another_tenant_is_another_request,
                    a_trigger_of_an_unknown_schedule_leaves_no_trace,
                    many_who_trigger_under_one_key_at_once_make_one_job,
                    a_trigger_takes_the_next_free_millisecond,
                    many_who_trigger_at_once_each_have_their_job_and_record,
                }
                made_jobs {
                    a_job_that_a_schedule_made_runs_like_any_other,
                    a_queue_is_known_once_a_schedule_fired_into_it,
                    a_firing_into_a_paused_queue_leaves_it_paused,
                    the_jobs_of_a_schedule_are_listed_live_and_finished,
                    jobs_that_are_not_over_are_active,
                    a_job_in_every_waiting_state_is_active,
                    active_jobs_are_those_of_the_schedules_asked_for,
                }
                calendars {
                    every_field_of_a_calendar_survives,
                    a_calendar_of_many_days_survives,
                    a_calendar_takes_the_place_of_one_of_its_name,
                    calendars_are_listed_by_name,
                    a_deleted_calendar_is_gone,
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
            ("editing", include_str!("editing.rs")),
            ("waking", include_str!("waking.rs")),
            ("firing", include_str!("firing.rs")),
            ("records", include_str!("records.rs")),
            ("ledger", include_str!("ledger.rs")),
            ("backfills", include_str!("backfills.rs")),
            ("deleting", include_str!("deleting.rs")),
            ("triggering", include_str!("triggering.rs")),
            ("made_jobs", include_str!("made_jobs.rs")),
            ("calendars", include_str!("calendars.rs")),
        ];
        assert_stamped(include_str!("mod.rs"), &groups);
    }
}
