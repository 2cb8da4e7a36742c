//! Definitions: kept word for word, a version each, and no version twice; also when the workflow was removed.

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
    let found = answered(store.get_workflow("default", name, version).await);
    if version.is_none() {
        let latest = answered(store.latest_version("default", name).await);
        assert_eq!(latest, found.as_ref().map(|workflow| workflow.version));
    }
    found
}

async fn remove(store: &Arc<dyn Store>, name: &str) -> bool {
    answered(store.remove_workflow("default", name).await)
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

pub async fn a_removed_workflow_is_gone_but_its_versions_stay(store: Arc<dyn Store>) {
    let first = put(&store, workflow("etl")).await;
    let second = put(&store, workflow("etl").description("more")).await;
    assert!(remove(&store, "etl").await);
    assert_eq!(
        get(&store, "etl", None).await,
        None,
        "the first is not the latest because the second is gone"
    );
    assert_eq!(list(&store, "default", 10).await, []);
    assert_eq!(get(&store, "etl", Some(1)).await.as_ref(), Some(&first));
    assert_eq!(get(&store, "etl", Some(2)).await.as_ref(), Some(&second));
    let versions = answered(store.list_workflow_versions("default", "etl", None, 10).await);
    assert_eq!(versions.items, [second, first]);
}

pub async fn what_is_stored_after_a_removal_is_the_next_version_even_if_it_says_the_same(
    store: Arc<dyn Store>,
) {
    put(&store, workflow("etl")).await;
    remove(&store, "etl").await;
    let same = put(&store, workflow("etl").created_at(at(9))).await;
    assert_eq!(same.version, 2);
    assert_eq!(get(&store, "etl", None).await.as_ref(), Some(&same));
    assert_eq!(list(&store, "default", 10).await, [same]);
    let again = workflow("etl").build();
    assert_eq!(answered(store.put_workflow(again).await), WorkflowPut::Unchanged(2), "it is there now");
    assert!(remove(&store, "etl").await, "as often as it is stored");
    let other = put(&store, workflow("etl").description("more")).await;
    assert_eq!((other.version, get(&store, "etl", None).await), (3, Some(other)));
}

pub async fn only_what_is_there_can_be_removed(store: Arc<dyn Store>) {
    let other = put(&store, workflow("other")).await;
    let foreign = put(&store, workflow("etl").tenant("acme")).await;
    assert!(!remove(&store, "etl").await, "that of another tenant");
    assert!(!remove(&store, "nobody").await);
    put(&store, workflow("etl")).await;
    assert!(remove(&store, "etl").await);
    assert!(!remove(&store, "etl").await, "it is gone");
    assert_eq!(list(&store, "default", 10).await, [other]);
    assert_eq!(list(&store, "acme", 10).await, [foreign]);
}

pub async fn removed_workflows_are_left_out_of_lists_in_pages_of_any_size(store: Arc<dyn Store>) {
    let mut left = Vec::new();
    for number in 0..12 {
        let name = format!("w{number:02}");
        let stored = put(&store, workflow(&name)).await;
        // The first, the last, and some that stand together.
        if [0, 3, 4, 5, 11].contains(&number) {
            assert!(remove(&store, &name).await);
        } else {
            left.push(stored);
        }
    }
    for limit in [1, 2, 3, left.len(), 100] {
        assert_eq!(list(&store, "default", limit).await, left, "pages of {limit}");
    }
    let all = WorkflowQuery { tenant: "default".into(), after: None, limit: left.len() };
    assert_eq!(answered(store.list_workflows(all).await).next, None, "what is removed makes no page");
}

pub async fn of_many_who_remove_a_workflow_one_does(store: Arc<dyn Store>) {
    put(&store, workflow("etl")).await;
    let mut removers = JoinSet::new();
    for _ in 0..12 {
        let store = store.clone();
        removers.spawn(async move { remove(&store, "etl").await });
    }
    let answers = removers.join_all().await;
    assert_eq!(answers.iter().filter(|removed| **removed).count(), 1);
}
