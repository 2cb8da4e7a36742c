//! Kills.
use crate::api::*;
use crate::server::*;
use crate::target::*;

#[tokio::test]
async fn chaos_smoke() {
    for kind in [StoreKind::Sqlite, StoreKind::Postgres] {
        let target = Target::start().await;
        let mut server = Server::start(kind).await;
        let job = server.api().submit(&http_job(&target.url("/a"))).await;
        let job = server.api().wait(&id_of(&job)).await;
        println!("{job}");
        assert_eq!(text(&job, "status"), "completed");
        server.kill9().await;
        server.restart().await;
        assert_eq!(server.api().list("/api/v1/jobs").await.len(), 1);
        println!("{:?}", server.api().attempts(&id_of(&job)).await);
        assert!(server.terminate().await.success());
    }
}
