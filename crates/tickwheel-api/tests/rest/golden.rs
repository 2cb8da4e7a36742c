//! The OpenAPI document is a golden file: a change of the API shows in review. `UPDATE_GOLDEN=1` rewrites it.

use std::path::PathBuf;

use crate::server::Server;

fn golden_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json")
}

#[test]
fn the_openapi_document_is_the_one_in_the_reference() {
    let document = format!("{}\n", tickwheel_api::openapi().to_pretty_json().unwrap());
    let path = golden_file();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &document).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(document == golden, "the API changed: run with UPDATE_GOLDEN=1 and review {}", path.display());
}

#[tokio::test]
async fn the_served_document_is_that_one_and_describes_every_call() {
    let server = Server::start();
    let served = server.get("/openapi.json").await.ok(200);
    let document = serde_json::to_value(tickwheel_api::openapi()).unwrap();
    assert_eq!(served, document);
    let calls = [
        ("/api/v1/jobs", "post"),
        ("/api/v1/jobs", "get"),
        ("/api/v1/jobs/batch", "post"),
        ("/api/v1/jobs/{id}", "get"),
        ("/api/v1/jobs/{id}", "patch"),
        ("/api/v1/jobs/{id}", "delete"),
        ("/api/v1/jobs/{id}/cancel", "post"),
        ("/api/v1/jobs/{id}/pause", "post"),
        ("/api/v1/jobs/{id}/resume", "post"),
        ("/api/v1/jobs/{id}/run", "post"),
        ("/api/v1/jobs/{id}/retry", "post"),
        ("/api/v1/jobs/{id}/attempts", "get"),
        ("/api/v1/jobs/{id}/attempts/{n}/logs", "get"),
        ("/api/v1/jobs/{id}/logs", "get"),
        ("/api/v1/jobs/{id}/callbacks", "get"),
        ("/api/v1/jobs/{id}/callbacks", "post"),
        ("/api/v1/jobs/{id}/why", "get"),
        ("/api/v1/attempts/{token}/complete", "post"),
        ("/api/v1/attempts/{token}/fail", "post"),
        ("/api/v1/attempts/{token}/heartbeat", "post"),
        ("/api/v1/attempts/{token}/logs", "post"),
        ("/api/v1/attempts/{token}/once/{key}", "post"),
        ("/api/v1/attempts/{token}/once/{key}/done", "post"),
        ("/api/v1/attempts/{token}/once/{key}/abandon", "post"),
        ("/api/v1/workers/{id}/logs", "post"),
        ("/api/v1/dead-letters", "get"),
        ("/api/v1/dead-letters/{job_id}", "get"),
        ("/api/v1/dead-letters/{job_id}", "delete"),
        ("/api/v1/dead-letters/{job_id}/redrive", "post"),
        ("/api/v1/dead-letters/redrive", "post"),
        ("/api/v1/dead-letters/redrive/{id}", "get"),
        ("/api/v1/queues", "get"),
        ("/api/v1/queues/{name}", "get"),
        ("/api/v1/queues/{name}/pause", "post"),
        ("/api/v1/queues/{name}/resume", "post"),
        ("/api/v1/server", "get"),
        ("/api/v1/workers", "post"),
        ("/api/v1/workers", "get"),
        ("/api/v1/workers/{id}", "get"),
        ("/api/v1/workers/{id}", "delete"),
        ("/api/v1/workers/{id}/poll", "post"),
        ("/api/v1/workers/{id}/heartbeat", "post"),
        ("/api/v1/workers/{id}/report", "post"),
        ("/api/v1/workers/{id}/drain", "post"),
        ("/api/v1/workers/{id}/resume", "post"),
        ("/api/v1/schedules", "post"),
        ("/api/v1/schedules", "get"),
        ("/api/v1/schedules/preview", "post"),
        ("/api/v1/schedules/{schedule}", "get"),
        ("/api/v1/schedules/{schedule}", "put"),
        ("/api/v1/schedules/{schedule}", "patch"),
        ("/api/v1/schedules/{schedule}", "delete"),
        ("/api/v1/schedules/{schedule}/pause", "post"),
        ("/api/v1/schedules/{schedule}/resume", "post"),
        ("/api/v1/schedules/{schedule}/trigger", "post"),
        ("/api/v1/schedules/{schedule}/next", "get"),
        ("/api/v1/schedules/{schedule}/fires", "get"),
        ("/api/v1/schedules/{schedule}/backfill", "post"),
        ("/api/v1/schedules/{schedule}/backfill", "get"),
        ("/api/v1/schedules/{schedule}/backfill/cancel", "post"),
        ("/api/v1/calendars", "get"),
        ("/api/v1/calendars/{name}", "get"),
        ("/api/v1/calendars/{name}", "put"),
        ("/api/v1/calendars/{name}", "delete"),
        ("/api/v1/calendars/{name}/import", "post"),
        ("/api/v1/cron/preview", "post"),
        ("/api/v1/workflows", "post"),
        ("/api/v1/workflows", "get"),
        ("/api/v1/workflows/{name}", "get"),
        ("/api/v1/workflows/{name}", "delete"),
        ("/api/v1/workflows/{name}/versions", "get"),
        ("/api/v1/workflows/{name}/graph", "get"),
        ("/api/v1/workflows/{name}/runs", "post"),
        ("/api/v1/workflow-runs", "get"),
        ("/api/v1/workflow-runs/{id}", "get"),
        ("/api/v1/workflow-runs/{id}/items", "get"),
        ("/api/v1/workflow-runs/{id}/pause", "post"),
        ("/api/v1/workflow-runs/{id}/resume", "post"),
        ("/api/v1/workflow-runs/{id}/cancel", "post"),
        ("/api/v1/workflow-runs/{id}/retry", "post"),
        ("/api/v1/workflow-runs/{id}/tasks/{task}/skip", "post"),
        ("/api/v1/workflow-runs/{id}/tasks/{task}/complete", "post"),
        ("/api/v1/workflow-runs/{id}/tasks/{task}/retry", "post"),
        ("/api/v1/admin/halt", "post"),
        ("/api/v1/admin/resume", "post"),
        ("/api/v1/admin/status", "get"),
        ("/healthz", "get"),
        ("/readyz", "get"),
        ("/metrics", "get"),
        ("/openapi.json", "get"),
    ];
    let mut ids = std::collections::HashSet::new();
    for (path, method) in calls {
        let operation = &document["paths"][path][method];
        assert!(operation.is_object(), "{method} {path} is not described");
        assert!(
            ids.insert(operation["operationId"].as_str().unwrap()),
            "{method} {path} has the id of another"
        );
        assert!(operation["responses"]["500"].is_object(), "{method} {path} says nothing of problems");
    }
    let described: usize =
        document["paths"].as_object().unwrap().values().map(|p| p.as_object().unwrap().len()).sum();
    assert_eq!(described, calls.len(), "a call is described that is not listed here");
}

#[test]
fn every_reference_in_the_document_leads_somewhere() {
    let document = serde_json::to_value(tickwheel_api::openapi()).unwrap();
    let text = document.to_string();
    let references: Vec<&str> =
        text.split(r##""$ref":"#"##).skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(!references.is_empty());
    for reference in references {
        assert!(document.pointer(reference).is_some(), "{reference} leads nowhere");
    }
}
