//! How one answer leads to the next call: which of its fields names what.

use utoipa::openapi::RefOr;
use utoipa::openapi::link::Link;
use utoipa::openapi::path::Operation;

use super::id_of;

/// A call, its answer, where the name of what it made is, which parameter takes it, and the calls that take it.
struct Lead {
    from: &'static str,
    status: &'static str,
    value: &'static str,
    parameter: &'static str,
    to: &'static [&'static str],
}

const LEADS: [Lead; 9] = [
    Lead {
        from: "submit_job",
        status: "201",
        value: "$response.body#/id",
        parameter: "id",
        to: &[
            "get_job",
            "patch_job",
            "delete_job",
            "cancel_job",
            "pause_job",
            "resume_job",
            "run_job",
            "retry_job",
            "list_attempts",
            "explain_job",
        ],
    },
    Lead {
        from: "create_schedule",
        status: "201",
        value: "$response.body#/id",
        parameter: "schedule",
        to: &[
            "get_schedule",
            "patch_schedule",
            "delete_schedule",
            "pause_schedule",
            "resume_schedule",
            "trigger_schedule",
            "next_fires",
            "list_fires",
            "backfill_schedule",
            "get_backfill",
            "cancel_backfill",
        ],
    },
    Lead {
        from: "trigger_schedule",
        status: "201",
        value: "$response.body#/id",
        parameter: "id",
        to: &["get_job", "cancel_job"],
    },
    Lead {
        from: "put_calendar",
        status: "200",
        value: "$response.body#/name",
        parameter: "name",
        to: &["get_calendar", "import_calendar", "delete_calendar"],
    },
    Lead {
        from: "submit_workflow",
        status: "201",
        value: "$response.body#/name",
        parameter: "name",
        to: &[
            "get_workflow",
            "draw_workflow",
            "list_workflow_versions",
            "start_workflow_run",
            "delete_workflow",
        ],
    },
    Lead {
        from: "start_workflow_run",
        status: "201",
        value: "$response.body#/id",
        parameter: "id",
        to: &[
            "get_workflow_run",
            "pause_workflow_run",
            "resume_workflow_run",
            "cancel_workflow_run",
            "retry_workflow_run",
        ],
    },
    Lead {
        from: "redrive_dead_letters",
        status: "200",
        value: "$response.body#/id",
        parameter: "id",
        to: &["get_redrive"],
    },
    Lead {
        from: "redrive_dead_letters",
        status: "202",
        value: "$response.body#/id",
        parameter: "id",
        to: &["get_redrive"],
    },
    Lead {
        from: "pause_queue",
        status: "200",
        value: "$response.body#/name",
        parameter: "name",
        to: &["get_queue", "resume_queue"],
    },
];

/// Adds where the answers of the call lead.
pub fn add(operation: &mut Operation) {
    let id = id_of(operation).to_owned();
    for lead in LEADS.iter().filter(|lead| lead.from == id) {
        let Some(RefOr::T(answer)) = operation.responses.responses.get_mut(lead.status) else { continue };
        for to in lead.to {
            let link = Link::builder().operation_id(*to).parameter(lead.parameter, lead.value);
            answer.links.insert((*to).into(), RefOr::T(link.build()));
        }
    }
}
