//! Lists do bounded work: with a bound of a few rows the pages are short, and still nothing is missing or twice.

use tickwheel_core::change::Change;
use tickwheel_core::ports::{JobQuery, JobStore};
use tickwheel_core::{JobId, State};
use tickwheel_testkit::TestDatabase;
use tickwheel_testkit::fixtures::{JobBuilder, at, job};

use super::{connect, ids, submit};
use crate::postgres::PostgresStore;
use crate::postgres::lists::list_jobs;

const BOUND: usize = 5;

/// Sixty jobs; every tenth is tagged and in a queue of its own, every other one is cancelled.
async fn sixty_jobs(store: &PostgresStore) -> Vec<JobId> {
    let rare = |builder: JobBuilder| builder.queue("rare").with(|job| job.tags = vec!["rare".to_owned()]);
    let builders = (0..60).map(|number| {
        let builder = job().created_at(at(number));
        if number % 10 == 0 { rare(builder) } else { builder }
    });
    let jobs = submit(store, builders).await;
    for id in jobs.iter().step_by(4).chain(jobs.iter().skip(1).step_by(4)) {
        store.change_job(*id, Change::Cancel, at(100)).await.expect("cancelled");
    }
    jobs
}

/// All pages, and how many there were.
async fn all_pages(store: &PostgresStore, mut query: JobQuery) -> (Vec<JobId>, usize) {
    let (mut found, mut pages) = (Vec::new(), 0);
    loop {
        let page = list_jobs(store, &query, BOUND).await.expect("a page");
        assert!(page.items.len() <= query.limit);
        found.extend(ids(&page.items));
        pages += 1;
        match page.next {
            Some(next) => query.after = Some(next),
            None => return (found, pages),
        }
    }
}

fn newest_first(jobs: impl DoubleEndedIterator<Item = JobId>) -> Vec<JobId> {
    jobs.rev().collect()
}

#[tokio::test]
async fn a_page_that_hits_the_bound_is_short_and_the_next_goes_on() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    let jobs = sixty_jobs(&store).await;
    let query = JobQuery { queue: Some("rare".to_owned()), limit: 4, ..JobQuery::default() };
    let (found, pages) = all_pages(&store, query).await;
    assert_eq!(found, newest_first(jobs.iter().copied().step_by(10)));
    assert!(pages > 5, "six jobs would fit in two pages: the bound was not in force");
}

#[tokio::test]
async fn every_way_through_the_tables_finds_the_same() {
    let database = TestDatabase::create().await;
    let store = connect(&database).await;
    let jobs = sixty_jobs(&store).await;
    let base = JobQuery { limit: 4, ..JobQuery::default() };

    let (all, _) = all_pages(&store, base.clone()).await;
    assert_eq!(all, newest_first(jobs.iter().copied()));
    let (by_tag, _) = all_pages(&store, JobQuery { tags: ["rare".to_owned()].into(), ..base.clone() }).await;
    assert_eq!(by_tag, newest_first(jobs.iter().copied().step_by(10)));
    let (by_type, _) =
        all_pages(&store, JobQuery { job_type: Some("email.send".to_owned()), ..base.clone() }).await;
    assert_eq!(by_type, all);
    let (cancelled, _) =
        all_pages(&store, JobQuery { states: [State::Cancelled].into(), ..base.clone() }).await;
    let (waiting, _) = all_pages(&store, JobQuery { states: [State::Scheduled].into(), ..base }).await;
    let mut both = [cancelled, waiting].concat();
    both.sort_unstable();
    assert_eq!(both, jobs);
}
