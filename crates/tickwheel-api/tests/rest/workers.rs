//! The calls of workers, as they look from outside.

use serde_json::json;

use crate::server::Server;

async fn register(server: &Server) -> String {
    let answer = server.post("/api/v1/workers", json!({"name": "w", "types": ["send"], "capacity": 3})).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    answer.body["worker_id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn a_library_learns_what_the_server_speaks() {
    let answer = Server::start().get("/api/v1/server").await.body;
    assert_eq!(answer["worker_protocol"], json!({"min": 1, "max": 1}));
    for feature in ["resync", "logs", "progress", "once"] {
        assert!(answer["features"].as_array().unwrap().contains(&json!(feature)), "{feature}");
    }
}

#[tokio::test]
async fn a_worker_registers_polls_reports_and_leaves() {
    let server = Server::start();
    let id = register(&server).await;
    let job = server.post("/api/v1/jobs", json!({"type": "send", "payload": {"to": "a"}})).await.body;
    let polled = server.post(&format!("/api/v1/workers/{id}/poll"), json!({"max": 2, "seq": 1})).await.body;
    let assignment = &polled["jobs"][0];
    assert_eq!((&assignment["job"]["id"], &polled["seq"]), (&job["id"], &json!(1)));
    assert_eq!(assignment["job"]["payload"], json!({"to": "a"}));
    assert_eq!(assignment["fencing_token"], 1);
    assert_eq!(assignment["deadline_in"], "300s");
    let shown = server.get(&format!("/api/v1/workers/{id}")).await.body;
    assert_eq!((&shown["running"], &shown["attempts"][0]["job_id"]), (&json!(1), &job["id"]));

    let reports = json!({"reports": [
        {"token": assignment["token"], "outcome": "completed", "result": 7},
        {"token": "nonsense", "outcome": "completed"},
        {"token": assignment["token"], "outcome": "snoozed"},
    ]});
    let results = server.post(&format!("/api/v1/workers/{id}/report"), reports).await.body;
    assert_eq!(results["results"][0], json!({"status": "accepted", "job_status": "completed"}));
    assert_eq!(results["results"][1]["error"]["code"], "stale_token");
    assert_eq!(results["results"][2]["error"]["code"], "validation_failed");
    let done = server.get(&format!("/api/v1/jobs/{}", job["id"].as_str().unwrap())).await.body;
    assert_eq!((&done["status"], &done["result"]), (&json!("completed"), &json!(7)));

    assert_eq!(server.call("DELETE", &format!("/api/v1/workers/{id}?reason=drained")).await.status, 204);
    let gone = server.post(&format!("/api/v1/workers/{id}/heartbeat"), json!({})).await;
    assert_eq!((gone.status.as_u16(), &gone.body["code"]), (404, &json!("unknown_worker")));
}

#[tokio::test]
async fn a_heartbeat_tells_what_to_cancel_and_what_is_lost() {
    let server = Server::start();
    let id = register(&server).await;
    let job = server.post("/api/v1/jobs", json!({"type": "send"})).await.body;
    let polled = server.post(&format!("/api/v1/workers/{id}/poll"), json!({})).await.body;
    let token = &polled["jobs"][0]["token"];
    let beat = format!("/api/v1/workers/{id}/heartbeat");
    let calm =
        server.post(&beat, json!({"attempts": [{"token": token, "progress": 10}], "held": 1})).await.body;
    assert_eq!((&calm["cancel"], &calm["lost"], &calm["resync"]), (&json!([]), &json!([]), &json!(false)));
    assert_eq!(calm["lease"], "15s");
    let shown = server.get(&format!("/api/v1/jobs/{}", job["id"].as_str().unwrap())).await.body;
    assert_eq!(shown["progress"], 10.0);
    server.post(&format!("/api/v1/jobs/{}/cancel", job["id"].as_str().unwrap()), json!({})).await;
    let told = server.post(&beat, json!({"tokens": [token, "nonsense"]})).await.body;
    assert_eq!((&told["cancel"], &told["lost"]), (&json!([token]), &json!(["nonsense"])));
    let differs = server.post(&beat, json!({"held": 5})).await.body;
    assert_eq!(differs["resync"], true);
}

#[tokio::test]
async fn what_a_worker_asks_for_has_bounds() {
    let server = Server::start();
    let refused = async |body| server.post("/api/v1/workers", body).await.body["code"].clone();
    assert_eq!(refused(json!({"name": "w", "types": []})).await, "validation_failed");
    assert_eq!(refused(json!({"name": "w", "types": ["a"], "lease": "1s"})).await, "lease_out_of_range");
    assert_eq!(refused(json!({"name": "w", "types": ["a"], "protocol": 2})).await, "protocol_unsupported");
    assert_eq!(refused(json!({"name": "w", "types": ["a"], "color": 1})).await, "unknown_field");
    assert_eq!(server.get("/api/v1/workers/7").await.body["code"], "invalid_id");
}
