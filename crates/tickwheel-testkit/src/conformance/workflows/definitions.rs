//! Definitions: kept word for word, a version each, and no version twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use tickwheel_core::ports::{Store, WorkflowPut, WorkflowQuery};
use tickwheel_core::workflow::Workflow;
use tokio::task::JoinSet;

use super::super::store::bench::{ODD_TEXT, answered};
use crate::fixtures::{WorkflowBuilder, at, rich_spec, workflow};

/// Stored as a new version.
async fn put(store: &Arc<dyn Store>, builder: WorkflowBuilder) -> Workflow {
    let workflow = builder.build();
    match answered(store.put_workflow(workflow.clone()).await) {
        WorkflowPut::Created(version) => Workflow { version, ..workflow },
        unchanged => panic!("it is new: {unchanged:?}"),
    }
}

async fn get(store: &Arc<dyn Store>, name: &str, version: Option<u32>) -> Option<Workflow> {
    answered(store.get_workflow("default", name, version).await)
}

async fn list(store: &Arc<dyn Store>, tenant: &str, limit: usize) -> Vec<Workflow> {
    let mut query = WorkflowQuery { tenant: tenant.into(), after: None, limit };
    let mut all = Vec::new();
    for _ in 0..100 {
        let page = answered(store.list_workflows(query.clone()).await);
        assert!(page.items.len() <= limit);
        all.extend(page.items);
        match page.next {
            None => return all,
            next => query.after = next,
        }
    }
    panic!("the list does not end");
}

pub async fn every_field_of_a_workflow_survives(store: Arc<dyn Store>) {
    let rich = workflow(ODD_TEXT).tenant("acme").created_at(at(7)).spec(|spec| *spec = rich_spec());
    let stored = put(&store, rich.description(ODD_TEXT)).await;
    assert_eq!(stored.version, 1);
    assert_eq!(answered(store.get_workflow("acme", ODD_TEXT, None).await), Some(stored.clone()));
    assert_eq!(answered(store.get_workflow("acme", ODD_TEXT, Some(1)).await), Some(stored.clone()));
    assert_eq!(list(&store, "acme", 10).await, [stored]);
}

pub async fn a_changed_definition_is_the_next_version_and_the_former_ones_stay(store: Arc<dyn Store>) {
    let first = put(&store, workflow("etl")).await;
    let second = put(&store, workflow("etl").description("more").created_at(at(5))).await;
    assert_eq!((first.version, second.version), (1, 2));
    assert_eq!(get(&store, "etl", None).await, Some(second.clone()));
    assert_eq!(get(&store, "etl", Some(1)).await, Some(first));
    assert_eq!(get(&store, "etl", Some(2)).await, Some(second));
    assert_eq!(get(&store, "etl", Some(3)).await, None);
    assert_eq!(get(&store, "etl", Some(u32::MAX)).await, None);
}

pub async fn the_same_definition_again_is_no_new_version(store: Arc<dyn Store>) {
    put(&store, workflow("etl")).await;
    let again = workflow("etl").created_at(at(9)).build();
    assert_eq!(answered(store.put_workflow(again.clone()).await), WorkflowPut::Unchanged(1));
    put(&store, workflow("etl").description("more")).await;
    // What an earlier version said is another definition than the latest.
    assert_eq!(answered(store.put_workflow(again).await), WorkflowPut::Created(3));
}

pub async fn a_name_belongs_to_its_tenant(store: Arc<dyn Store>) {
    let acme = put(&store, workflow("etl").tenant("acme")).await;
    let zoo = put(&store, workflow("etl").tenant("zoo").description("other")).await;
    assert_eq!((acme.version, zoo.version), (1, 1));
    assert_eq!(get(&store, "etl", None).await, None);
    assert_eq!(answered(store.get_workflow("acme", "ETL", None).await), None);
    assert_eq!(list(&store, "acme", 10).await, [acme]);
    assert_eq!(list(&store, "zoo", 10).await, [zoo]);
}

pub async fn the_latest_versions_are_listed_by_name_in_pages_of_any_size(store: Arc<dyn Store>) {
    let mut latest = Vec::new();
    for name in ["b", "a", "Z", "é", "a b", "aa", ODD_TEXT] {
        put(&store, workflow(name)).await;
        latest.push(put(&store, workflow(name).description("second")).await);
    }
    latest.sort_by_key(|workflow| workflow.name.clone());
    for limit in [1, 3, latest.len(), 100] {
        assert_eq!(list(&store, "default", limit).await, latest, "pages of {limit}");
    }
    assert_eq!(list(&store, "nobody", 10).await, []);
}

pub async fn versions_are_listed_the_latest_first(store: Arc<dyn Store>) {
    let mut versions = Vec::new();
    for number in 0..5 {
        versions.push(put(&store, workflow("etl").description(&format!("{number}"))).await);
    }
    put(&store, workflow("other")).await;
    versions.reverse();
    for limit in [1, 2, 5, 100] {
        let (mut all, mut before) = (Vec::new(), None);
        loop {
            let listed = store.list_workflow_versions("default", "etl", before, limit);
            let page = answered(listed.await);
            assert!(page.items.len() <= limit);
            all.extend(page.items);
            match page.next {
                None => break,
                next => before = next,
            }
        }
        assert_eq!(all, versions, "pages of {limit}");
    }
}

pub async fn many_who_define_at_once_make_a_version_each(store: Arc<dyn Store>) {
    let mut writers = JoinSet::new();
    for number in 0..12 {
        let (store, new) = (store.clone(), workflow("etl").description(&format!("{number}")).build());
        writers.spawn(async move { answered(store.put_workflow(new).await) });
    }
    let answers = writers.join_all().await;
    let created: BTreeSet<u32> = answers
        .iter()
        .map(|answer| match answer {
            WorkflowPut::Created(version) => *version,
            WorkflowPut::Unchanged(_) => panic!("no two are the same"),
        })
        .collect();
    assert_eq!(created, (1..=12).collect());
}
