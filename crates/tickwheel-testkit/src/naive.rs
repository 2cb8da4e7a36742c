//! What has to become of a run, found out in the simplest way: task by task, from the definition alone. And a run
//! played with the model as the store and the real decisions, in an order made up from a seed. Both have to come to the
//! same.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tickwheel_core::ports::{Claim, RunAdvanced, RunStart};
use tickwheel_core::retry::Jitter;
use tickwheel_core::settle::{Outcome, PoisonRule, decide};
use tickwheel_core::workflow::{
    DataLimits, Each, Graph, OnFailure, PARENT_RESULTS_BYTES_MAX, ParentResults, ReconcileScope, RunContext,
    RunStatus, RunStep, RunTask, TaskSpec, TriggerRule, Work, Workflow, WorkflowSpec, begin, needs_of,
    needs_of_review, reconcile_scope, step_from_counts, step_of_review, step_of_tasks,
};
use tickwheel_core::{Failure, Job, JobId, JsonText, RunId, SessionId, State};
use uuid::Uuid;

use crate::fixtures::{START, session, session_id};
use crate::graphs::{Graphs, some_result};
use crate::model::Model;

/// How long a task may take. None of them takes any time here.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How a task ends.
#[derive(Clone, Debug, PartialEq)]
enum End {
    Done(Value),
    Skipped,
    Failed,
    Blocked,
}

impl End {
    fn is_bad(&self) -> bool {
        matches!(self, Self::Failed | Self::Blocked)
    }

    fn state(&self) -> State {
        match self {
            Self::Done(_) => State::Completed,
            Self::Skipped => State::Skipped,
            Self::Failed => State::Failed,
            Self::Blocked => State::Blocked,
        }
    }
}

/// What a target makes of the task at a path: always the same.
fn fate(seed: u64, path: &str) -> Option<Value> {
    let number = path.bytes().fold(seed, |hash, byte| hash.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte));
    let mut rng = StdRng::seed_from_u64(number);
    let fails = rng.random_range(0..100) < 15;
    (!fails).then(|| serde_json::from_str(some_result(&mut rng).as_str()).expect("it is JSON"))
}

/// Finds out what has to become of every task.
struct Naive {
    seed: u64,
    ends: BTreeMap<String, State>,
    ran: Vec<String>,
}

type Env = HashMap<String, End>;

impl Naive {
    fn workflow(&mut self, spec: &WorkflowSpec) -> bool {
        let before: Vec<String> = spec.before.iter().map(|task| task.name.to_string()).collect();
        let mut tasks: Vec<TaskSpec> = spec.before.clone();
        for task in &spec.tasks {
            let mut task = task.clone();
            if task.depends_on.is_empty() {
                task.depends_on = before.iter().map(|name| name.as_str().into()).collect();
            }
            tasks.push(task);
        }
        let ends = self.scope("", &tasks, &Env::new());
        let after = self.scope("", &spec.after, &Env::new());
        !ends.values().chain(after.values()).any(End::is_bad)
    }

    /// Tasks come after all that they depend on.
    fn scope(&mut self, prefix: &str, tasks: &[TaskSpec], context: &Env) -> Env {
        let mut env = Env::new();
        for task in tasks {
            let path = format!("{prefix}{}", task.name);
            let end = self.task(&path, task, &env, context);
            self.ends.insert(path, end.state());
            env.insert(task.name.to_string(), end);
        }
        env
    }

    fn task(&mut self, path: &str, task: &TaskSpec, env: &Env, context: &Env) -> End {
        let parents: Vec<&End> = task.depends_on.iter().map(|name| &env[&**name]).collect();
        let bad = parents.iter().any(|end| end.is_bad());
        match task.rule {
            TriggerRule::AllSucceeded if bad => return End::Blocked,
            TriggerRule::AllSucceeded
                if !parents.is_empty() && parents.iter().all(|end| **end == End::Skipped) =>
            {
                return End::Skipped;
            }
            TriggerRule::AnyFailed if !bad => return End::Skipped,
            _ => {}
        }
        let result = |name: &str| match env.get(name).or_else(|| context.get(name)) {
            Some(End::Done(value)) => value.clone(),
            _ => Value::Null,
        };
        if let Some(when) = &task.when {
            let (name, limit) = when.split_once(".result.n > ").expect("the only kind there is");
            let limit: i64 = limit.parse().expect("a number");
            if result(name)["n"].as_i64().is_none_or(|n| n <= limit) {
                return End::Skipped;
            }
        }
        match &task.work {
            Work::Job(template) => {
                let payload: Value = serde_json::from_str(template.payload.as_str()).expect("it is JSON");
                if let Some(from) = payload["n"]["$from"].as_str() {
                    let name = from.split('.').next().expect("a name");
                    if result(name)["n"].is_null() {
                        return End::Failed;
                    }
                }
                self.job(path)
            }
            Work::ForEach(each) => {
                let name = each.over.split('.').next().expect("a name");
                let Value::Array(elements) = &result(name)["list"] else { return End::Failed };
                let mut known = context.clone();
                known.extend(env.clone());
                let items: Vec<End> = (0..elements.len())
                    .map(|n| self.item(&format!("{path}[{n}]"), &each.each, &known))
                    .collect();
                joined(items)
            }
        }
    }

    fn item(&mut self, path: &str, each: &Each, context: &Env) -> End {
        let end = match each {
            Each::Job(_) => self.job(path),
            Each::Tasks(tasks) => {
                let env = self.scope(&format!("{path}."), tasks, context);
                if env.values().any(End::is_bad) { End::Blocked } else { End::Done(Value::Null) }
            }
        };
        self.ends.insert(path.to_owned(), end.state());
        end
    }

    fn job(&mut self, path: &str) -> End {
        self.ran.push(path.to_owned());
        fate(self.seed, path).map_or(End::Failed, End::Done)
    }
}

/// An array has neither a number nor a list.
fn joined(items: Vec<End>) -> End {
    if items.iter().any(End::is_bad) { End::Blocked } else { End::Done(json!([])) }
}

/// A run, played.
struct Player {
    rng: StdRng,
    seed: u64,
    model: Model,
    workflow: Workflow,
    graph: Graph,
    run: RunId,
    session: SessionId,
    ran: Vec<String>,
}

impl Player {
    fn new(seed: u64, on_failure: OnFailure) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let workflow = Graphs { rng: &mut rng, retries: 0, timeout: TIMEOUT }.workflow(on_failure, START);
        let graph = Graph::stored(&workflow.spec).expect("what was made up is a graph");
        let run = RunId::fresh(Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0000));
        let mut model = Model::new();
        model.open_session(session(1, START + std::time::Duration::from_secs(1_000_000))).expect("fresh");
        let begun = begin(&graph, &workflow, run, JsonText::null(), None, START).expect("it needs no input");
        let jobs = begun.jobs;
        let start = RunStart {
            run: begun.run,
            jobs: jobs.jobs,
            reconcile_requests: jobs.reconcile_requests,
            notices: begun.notices,
            idempotency: None,
        };
        model.start_run(start).expect("fresh");
        Self { rng, seed, model, workflow, graph, run, session: session_id(1), ran: Vec::new() }
    }

    /// Plays to the end: in any order, one thing at a time.
    fn play(&mut self) {
        for _ in 0..20_000 {
            let reconcile_requests = !self.model.reconcile_requests(None, 1).is_empty();
            let scheduled = self.scheduled();
            if reconcile_requests && (scheduled.is_empty() || self.rng.random_range(0..2) == 0) {
                self.reconcile();
            } else if !scheduled.is_empty() {
                let at = self.rng.random_range(0..scheduled.len());
                self.execute(scheduled[at]);
            } else {
                return;
            }
        }
        panic!("it does not come to an end");
    }

    fn scheduled(&self) -> Vec<JobId> {
        let waiting = self.model.live().values().filter(|job| job.state() == State::Scheduled);
        waiting.map(|job| job.id).collect()
    }

    fn execute(&mut self, id: JobId) {
        let taken =
            self.model.claim(&Claim { claimed_by: None, session: self.session, jobs: vec![id], now: START });
        let job = taken.into_iter().next().expect("it is due");
        let path = self.path(&job);
        let outcome = match fate(self.seed, &path) {
            Some(value) => Outcome::Completed { result: Some(JsonText::from_checked(value.to_string())) },
            None => {
                Outcome::Failed { failure: Failure::new("no", "no"), retryable: false, retry_after: None }
            }
        };
        self.ran.push(path);
        let settlement = decide(&job, outcome, START, &PoisonRule::default(), Jitter::from_bits(0));
        self.model.settle(&[settlement.expect("it ended")]);
    }

    fn path(&self, job: &Job) -> String {
        self.graph.path_of(job.spec.position.as_ref().expect("a task"))
    }

    fn reconcile(&mut self) {
        let reconcile_requests = self.model.reconcile_requests(None, 10);
        let request = reconcile_requests[self.rng.random_range(0..reconcile_requests.len())];
        let (run, tasks) = self.model.read_run(self.run).expect("it exists");
        let context = RunContext {
            workflow: &self.workflow,
            graph: &self.graph,
            run: &run,
            now: START,
            limits: limits(),
        };
        let task = tasks.iter().find(|task| task.job_id == request.id);
        let step = match task.map(|task| (task, reconcile_scope(&self.graph, &run, task))) {
            Some((_, ReconcileScope::Nothing)) => RunStep::nothing(&run, START),
            Some((task, ReconcileScope::Task)) => {
                let data = data(&self.model, &needs_of(&self.graph, task));
                step_of_tasks(&context, &[task], &data)
            }
            Some((_, ReconcileScope::Whole)) | None => {
                let found = context.review(&tasks);
                let data = data(&self.model, &needs_of_review(&self.graph, &tasks, &found));
                let step = step_of_review(&context, &tasks, &found, &data);
                assert_says_the_same(&context, &step);
                step
            }
        };
        let step = RunStep { reconciled: vec![request], ..step };
        let advanced = self.model.advance_runs(vec![step]);
        assert!(matches!(advanced[0], RunAdvanced::Done(_)), "nobody else reconciles");
    }

    fn ends(&self) -> BTreeMap<String, State> {
        let (_, tasks) = self.model.read_run(self.run).expect("it exists");
        tasks.iter().map(|task: &RunTask| (self.graph.path_of(&task.position), task.state)).collect()
    }

    fn status(&self) -> RunStatus {
        self.model.get_runs(&[self.run])[0].progress.status
    }
}

/// What is stored of these jobs.
fn data(model: &Model, ids: &[JobId]) -> ParentResults {
    model.read_results(ids, PARENT_RESULTS_BYTES_MAX)
}

/// Steps make little, so that fan-outs take several.
fn limits() -> DataLimits {
    DataLimits { step_jobs_max: 2, ..DataLimits::default() }
}

/// What is decided without reading the tasks is what is decided from them.
fn assert_says_the_same(context: &RunContext<'_>, step: &RunStep) {
    if let Some(from_counts) = step_from_counts(context) {
        assert_eq!(from_counts, *step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a test goes through; `TICKWHEEL_SIM_SEEDS` asks for more.
    const SEEDS: u64 = 10_000;

    fn seeds() -> std::ops::Range<u64> {
        0..std::env::var("TICKWHEEL_SIM_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS)
    }

    #[test]
    fn every_run_comes_to_what_a_naive_interpreter_says() {
        let (mut ran, mut fanned) = (0, 0);
        for seed in seeds() {
            let mut player = Player::new(seed, OnFailure::Continue);
            player.play();
            let mut naive = Naive { seed, ends: BTreeMap::new(), ran: Vec::new() };
            let well = naive.workflow(&player.workflow.spec);
            assert_eq!(player.ends(), naive.ends, "seed {seed}: {:#?}", player.workflow.spec);
            let status = if well { RunStatus::Completed } else { RunStatus::Failed };
            assert_eq!(player.status(), status, "seed {seed}");
            fanned += naive.ran.iter().filter(|path| path.contains('[')).count();
            ran += naive.ran.len();
            player.ran.sort();
            naive.ran.sort();
            assert_eq!(player.ran, naive.ran, "seed {seed}: each once, and nothing else");
        }
        assert!(ran > 1_000 && fanned > 100, "{ran} tasks ran, {fanned} of them in fan-outs");
    }

    #[test]
    fn with_fail_fast_every_run_ends_and_only_runs_what_could_have_run() {
        for seed in seeds() {
            let mut player = Player::new(seed, OnFailure::FailFast);
            player.play();
            let mut naive = Naive { seed, ends: BTreeMap::new(), ran: Vec::new() };
            let well = naive.workflow(&player.workflow.spec);
            let status = if well { RunStatus::Completed } else { RunStatus::Failed };
            assert_eq!(player.status(), status, "seed {seed}: {:?} {:?}", player.ends(), naive.ends);
            for (path, state) in player.ends() {
                assert!(
                    state.is_terminal() || state == State::Blocked,
                    "seed {seed}: {path} is {state} in {:?}",
                    player.ends()
                );
            }
        }
    }
}
