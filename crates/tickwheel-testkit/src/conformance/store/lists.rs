//! Lists of jobs: newest first, live and finished together, without gaps and repeats.

use std::sync::Arc;

use tickwheel_core::change::{Change, Edit};
use tickwheel_core::ports::{JobQuery, Projection, Store};
use tickwheel_core::{Job, JobId, JsonText, Priority, State};

use super::bench::{Bench, answered, completes, fails, goes_again, is_cancelled, list_all};
use crate::fixtures::{JobBuilder, at, job, schedule_id};

/// Ids from the newest to the oldest.
fn newest_first<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> Vec<JobId> {
    let mut ids = super::bench::sorted_ids(jobs);
    ids.reverse();
    ids
}

/// Twenty jobs of different ages, every third of them ended.
async fn mixed_jobs(bench: &Bench) -> Vec<Job> {
    let mut jobs = Vec::new();
    for n in 0..20 {
        let builder = job().created_at(at(n / 2));
        let job = match n % 6 {
            0 => bench.settled(builder, completes).await,
            3 => bench.settled(builder, fails).await,
            _ => bench.submit(builder).await,
        };
        jobs.push(job);
    }
    jobs.sort_by_key(|job| std::cmp::Reverse(job.id));
    jobs
}

pub async fn live_and_finished_jobs_are_listed_together_newest_first(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    assert_eq!(bench.list(list_all()).await, []);
    let jobs = mixed_jobs(&bench).await;
    assert_eq!(bench.list(list_all()).await, jobs);
}

pub async fn pages_of_any_size_have_no_gaps_and_no_repeats(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let jobs = mixed_jobs(&bench).await;
    for limit in [1, 3, 7, 20, 21] {
        assert_eq!(bench.list(JobQuery { limit, ..list_all() }).await, jobs, "pages of {limit}");
    }
}

/// Twelve jobs of ten thousand bytes, live and finished: however large, each is on a page, and no page is much larger
/// than allowed.
pub async fn a_page_ends_when_it_has_enough_bytes(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let long = format!("\"{}\"", "x".repeat(10_000));
    let mut ids = Vec::new();
    for n in 0..12 {
        let builder = job().created_at(at(n)).payload(&long);
        let job = if n % 3 == 0 { bench.settled(builder, fails).await } else { bench.submit(builder).await };
        ids.push(job.id);
    }
    ids.reverse();
    for (bytes_max, most) in [(1, 1), (25_000, 3), (60_000, 6), (usize::MAX, 12)] {
        let projection = Projection { bytes_max, ..Projection::default() };
        let mut query = JobQuery { projection, ..list_all() };
        assert_eq!(bench.list_ids(query.clone()).await, ids, "{bytes_max} bytes");
        loop {
            let page = answered(bench.store.list_jobs(query.clone()).await);
            assert!(page.items.len() <= most, "{} of {bytes_max} bytes", page.items.len());
            assert!(page.next.is_none() || !page.items.is_empty(), "there is room for one at least");
            match page.next {
                None => break,
                next => query.after = next,
            }
        }
    }
    let narrow = Projection { payload: false, bytes_max: 30_000, ..Projection::default() };
    let page = answered(bench.store.list_jobs(JobQuery { projection: narrow, ..list_all() }).await);
    assert_eq!(page.items.len(), 12, "what is left out weighs nothing");
}

pub async fn a_list_leaves_out_what_is_not_asked_for(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let live = bench.submit(job().payload("[1]")).await;
    let ended = bench.settled(job().payload("[2]"), completes).await;
    for (payload, result) in [(true, true), (true, false), (false, true), (false, false)] {
        let projection = Projection { payload, result, ..Projection::default() };
        let mut expected = [ended.clone(), live.clone()];
        expected.sort_by_key(|job| std::cmp::Reverse(job.id));
        for job in &mut expected {
            job.payload = if payload { job.payload.clone() } else { JsonText::null().into() };
            job.result = job.result.take().filter(|_| result);
        }
        assert_eq!(bench.list(JobQuery { projection, ..list_all() }).await, expected);
    }
}

/// A job that ends between two pages is neither lost nor shown twice.
pub async fn jobs_that_end_between_two_pages_keep_their_place(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let jobs = bench.submit_all((0..9).map(|n| job().created_at(at(n)))).await;
    let mut seen = Vec::new();
    let mut query = JobQuery { limit: 2, ..list_all() };
    for job in &jobs {
        let page = answered(bench.store.list_jobs(query.clone()).await);
        seen.extend(page.items.iter().map(|job| job.id));
        let Some(next) = page.next else { break };
        query.after = Some(next);
        let running = bench.start(job).await;
        bench.settle(completes(&running)).await;
    }
    seen.extend(bench.list_ids(query).await);
    seen.dedup();
    assert_eq!(seen, newest_first(&jobs));
}

pub async fn jobs_are_found_by_every_state(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let mut jobs = vec![
        bench.running(job()).await,
        bench.settled(job(), completes).await,
        bench.settled(job(), fails).await,
        bench.settled(job(), is_cancelled).await,
    ];
    for state in [State::Pending, State::Scheduled, State::Paused, State::Blocked] {
        jobs.push(bench.submit(job().state(state)).await);
    }
    for job in jobs {
        let query = JobQuery { states: [job.state()].into(), ..list_all() };
        assert_eq!(bench.list(query).await, [job]);
    }
    let dispatched = JobQuery { states: [State::Dispatched].into(), ..list_all() };
    assert_eq!(bench.list(dispatched).await, []);
}

/// A pair of jobs for each of `builders`, one live and one finished; then what each query finds of them.
async fn pairs<const N: usize>(bench: &Bench, builders: [fn() -> JobBuilder; N]) -> [Vec<JobId>; N] {
    let mut pairs = Vec::new();
    for builder in builders {
        let live = bench.submit(builder()).await;
        let finished = bench.settled(builder(), completes).await;
        pairs.push(newest_first([&live, &finished]));
    }
    pairs.try_into().expect("one pair a builder")
}

pub async fn jobs_are_found_by_their_type(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let [a, b] = pairs(&bench, [|| job().job_type("a"), || job().job_type("b")]).await;
    let of = |text: &str| JobQuery { job_type: Some(text.into()), ..list_all() };
    assert_eq!(bench.list_ids(of("a")).await, a);
    assert_eq!(bench.list_ids(of("b")).await, b);
    assert_eq!(bench.list_ids(of("A")).await, [], "the case counts");
    assert_eq!(bench.list_ids(of("")).await, []);
}

pub async fn jobs_are_found_by_their_queue(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let [a, b] = pairs(&bench, [|| job().queue("a"), || job().queue("b")]).await;
    let of = |text: &str| JobQuery { queue: Some(text.into()), ..list_all() };
    assert_eq!(bench.list_ids(of("a")).await, a);
    assert_eq!(bench.list_ids(of("b")).await, b);
    assert_eq!(bench.list_ids(of("%")).await, []);
}

pub async fn jobs_are_found_by_their_tenant(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let [a, b] = pairs(&bench, [|| job().tenant("a"), || job().tenant("b")]).await;
    let of = |text: &str| JobQuery { tenant: Some(text.into()), ..list_all() };
    assert_eq!(bench.list_ids(of("a")).await, a);
    assert_eq!(bench.list_ids(of("b")).await, b);
}

pub async fn jobs_are_found_by_the_schedule_that_made_them(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let one = || job().with(|job| job.schedule_id = Some(schedule_id(1)));
    let other = || job().with(|job| job.schedule_id = Some(schedule_id(2)));
    let [one, other, _of_none] = pairs(&bench, [one, other, job]).await;
    let of = |number| JobQuery { schedule_id: Some(schedule_id(number)), ..list_all() };
    assert_eq!(bench.list_ids(of(1)).await, one);
    assert_eq!(bench.list_ids(JobQuery { limit: 1, ..of(1) }).await, one);
    assert_eq!(bench.list_ids(of(2)).await, other);
    assert_eq!(bench.list_ids(of(3)).await, []);
}

pub async fn jobs_are_found_by_their_priority(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let low = || job().priority(Priority::Low);
    let [critical, low] = pairs(&bench, [|| job().priority(Priority::Critical), low]).await;
    let of = |priority| JobQuery { priority: Some(priority), ..list_all() };
    assert_eq!(bench.list_ids(of(Priority::Critical)).await, critical);
    assert_eq!(bench.list_ids(of(Priority::Low)).await, low);
    assert_eq!(bench.list_ids(of(Priority::Normal)).await, []);
}

fn tagged(tag: &str) -> JobQuery {
    JobQuery { tags: [tag.into()].into(), ..list_all() }
}

pub async fn jobs_are_found_by_each_of_their_tags(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let [both, one] = pairs(&bench, [|| job().tags(["a", "b", "a"]), || job().tags(["b"])]).await;
    bench.submit(job()).await;
    assert_eq!(bench.list_ids(tagged("a")).await, both);
    let mut all = [both, one].concat();
    all.sort_by_key(|id| std::cmp::Reverse(*id));
    assert_eq!(bench.list_ids(tagged("b")).await, all);
    let by_one = JobQuery { limit: 1, ..tagged("b") };
    assert_eq!(bench.list_ids(by_one).await, all);
    assert_eq!(bench.list_ids(tagged("c")).await, []);
}

pub async fn jobs_are_found_by_several_states_at_once(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let mut jobs = Vec::new();
    for n in 0..4 {
        jobs.push(bench.settled(job().created_at(at(n)), completes).await);
        jobs.push(bench.settled(job().created_at(at(n)), fails).await);
        jobs.push(bench.settled(job().created_at(at(n)), is_cancelled).await);
        for state in [State::Scheduled, State::Paused] {
            jobs.push(bench.submit(job().created_at(at(n)).state(state)).await);
        }
    }
    for states in [
        &[State::Failed, State::Cancelled][..],
        &[State::Failed, State::Completed],
        &[State::Scheduled, State::Paused],
        &[State::Paused, State::Failed],
        &[State::Paused, State::Completed, State::Cancelled],
        &State::ALL,
    ] {
        let expected = newest_first(jobs.iter().filter(|job| states.contains(&job.state())));
        for limit in [1, 3, 100] {
            let query = JobQuery { states: states.iter().copied().collect(), limit, ..list_all() };
            assert_eq!(bench.list_ids(query).await, expected, "{states:?}, pages of {limit}");
        }
    }
}

pub async fn jobs_are_found_by_several_tags_at_once(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let three = || job().tags(["a", "b", "c"]);
    let [all, some, _one] = pairs(&bench, [three, || job().tags(["c", "a"]), || job().tags(["a"])]).await;
    let of = |tags: &[&str]| JobQuery { tags: tags.iter().map(|tag| (*tag).into()).collect(), ..list_all() };
    assert_eq!(bench.list_ids(of(&["a", "b", "c"])).await, all);
    assert_eq!(bench.list_ids(JobQuery { limit: 1, ..of(&["b", "c"]) }).await, all);
    let mut both = [all, some].concat();
    both.sort_by_key(|id| std::cmp::Reverse(*id));
    assert_eq!(bench.list_ids(of(&["a", "c"])).await, both);
    assert_eq!(bench.list_ids(JobQuery { limit: 1, ..of(&["a", "c"]) }).await, both);
    assert_eq!(bench.list_ids(of(&["a", "d"])).await, []);
    let completed = JobQuery { states: [State::Completed].into(), ..of(&["a", "c"]) };
    assert_eq!(bench.list_ids(completed).await.len(), 2);
}

pub async fn tags_follow_the_job_through_edit_end_and_retry(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let job = bench.submit(job().tags(["old", "kept"])).await;
    let tags = Some(vec!["kept".into(), "new".into()]);
    bench.changed(job.id, Change::Edit(Edit { tags, ..Edit::default() }), at(1)).await;
    let check = async || {
        assert_eq!(bench.list_ids(tagged("old")).await, []);
        assert_eq!(bench.list_ids(tagged("kept")).await, [job.id]);
        assert_eq!(bench.list_ids(tagged("new")).await, [job.id]);
    };
    check().await;
    let running = bench.start(&job).await;
    bench.settle(goes_again(&running)).await;
    bench.changed(job.id, Change::Cancel, at(2)).await;
    check().await;
    bench.changed(job.id, Change::Retry { payload: None }, at(3)).await;
    check().await;
}

pub async fn jobs_are_found_by_the_time_of_their_creation(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let mut jobs = Vec::new();
    for ms in [10, 20, 30] {
        jobs.push(bench.submit(job().created_at(at(ms))).await);
        jobs.push(bench.settled(job().created_at(at(ms)), completes).await);
    }
    let range = |from: Option<i64>, before: Option<i64>| JobQuery {
        created_from: from.map(at),
        created_before: before.map(at),
        ..list_all()
    };
    assert_eq!(bench.list_ids(range(Some(20), None)).await, newest_first(&jobs[2..]));
    assert_eq!(bench.list_ids(range(None, Some(20))).await, newest_first(&jobs[..2]));
    assert_eq!(bench.list_ids(range(Some(11), Some(30))).await, newest_first(&jobs[2..4]));
    assert_eq!(bench.list_ids(range(Some(31), None)).await, []);
    assert_eq!(bench.list_ids(range(Some(20), Some(20))).await, []);
    let paged = JobQuery { limit: 1, ..range(Some(10), Some(30)) };
    assert_eq!(bench.list_ids(paged).await, newest_first(&jobs[..4]));
}

pub async fn all_conditions_of_a_query_hold_together(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let builder = || {
        let job = job().created_at(at(10)).job_type("t").queue("q").tenant("n");
        job.priority(Priority::High).tags(["x"]).with(|job| job.schedule_id = Some(schedule_id(1)))
    };
    let near_misses = [
        builder().job_type("other"),
        builder().queue("other"),
        builder().tenant("other"),
        builder().priority(Priority::Low),
        builder().tags(["y"]),
        builder().created_at(at(20)),
        builder().with(|job| job.schedule_id = Some(schedule_id(2))),
    ];
    for miss in near_misses {
        bench.settled(miss.clone(), fails).await;
    }
    bench.submit(builder()).await;
    let wanted = bench.settled(builder(), fails).await;
    let query = JobQuery {
        states: [State::Failed].into(),
        job_type: Some("t".into()),
        queue: Some("q".into()),
        tags: ["x".into()].into(),
        priority: Some(Priority::High),
        tenant: Some("n".into()),
        schedule_id: Some(schedule_id(1)),
        run: None,
        created_from: Some(at(10)),
        created_before: Some(at(11)),
        after: None,
        limit: 2,
        projection: Projection::default(),
    };
    assert_eq!(bench.list_ids(query.clone()).await, [wanted.id]);
    assert_eq!(bench.list(JobQuery { after: Some(wanted.id), states: [].into(), ..query }).await.len(), 1);
}
