//! The front page: where to go from here.

use axum::Json;
use serde_json::{Value, json};

/// A welcome with links.
pub async fn index() -> Json<Value> {
    Json(json!({
        "name": "tickwheel",
        "version": env!("CARGO_PKG_VERSION"),
        "links": {
            "jobs": "/api/v1/jobs",
            "dead_letters": "/api/v1/dead-letters",
            "queues": "/api/v1/queues",
            "status": "/api/v1/admin/status",
            "health": "/healthz",
            "readiness": "/readyz",
            "metrics": "/metrics",
            "openapi": "/openapi.json",
        },
    }))
}
