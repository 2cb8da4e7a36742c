//! What clients do with workflows: start runs of them, and change their minds.

use rand::RngExt;
use tickwheel_core::ports::{Creation, RunChanged, StartRun};
use tickwheel_core::workflow::{OnFailure, RunCommand, RunStatus, Workflow};
use tickwheel_core::{JsonText, RunId, Timestamp};
use tickwheel_testkit::fixtures::run_id;
use tickwheel_testkit::graphs::Graphs;

use crate::TIMEOUT;
use crate::checks::Forbidden;
use crate::cluster::Cluster;
use crate::injected::FaultKind;
use crate::node::Process;
use crate::world::World;

impl World {
    /// One client does something with workflows.
    pub fn client_uses_workflows(&mut self, process: &Process) {
        let mut cluster = self.cluster.lock();
        let runs: Vec<RunId> = cluster.workflow_checks.runs.keys().copied().collect();
        let starts = runs.is_empty() || cluster.chance(40);
        let run = cluster.some_of(&runs);
        drop(cluster);
        match run.filter(|_| !starts) {
            Some(run) => self.command_run(process, run),
            None => self.start_run(process),
        }
    }

    fn start_run(&mut self, process: &Process) {
        let Some(workflows) = process.with_engine(|engine| engine.workflows()) else { return };
        let mut cluster = self.cluster.lock();
        let (now, number) = (cluster.now_of(process.node()), cluster.next_number());
        let workflow = cluster.some_workflow(number, now);
        // An impatient client sends the same again.
        let tries = if cluster.chance(15) { 2 } else { 1 };
        (1..tries).for_each(|_| cluster.injected.count(FaultKind::SubmissionDoubled));
        drop(cluster);
        let start = StartRun {
            tenant: workflow.tenant.clone(),
            workflow: workflow.name.to_string(),
            id: run_id(now, number),
            input: JsonText::null(),
            job_id: None,
            idempotency: None,
        };
        let cluster = self.cluster.clone();
        process.serve(async move {
            if workflows.put(workflow).await.is_err() {
                return;
            }
            let mut created = 0;
            for _ in 0..tries {
                match workflows.start(start.clone()).await {
                    Ok(Creation::Created(_)) => created += 1,
                    Ok(Creation::Existing(_)) | Err(_) => {}
                    Ok(other) => cluster.lock().violated("I1", format!("{}: {other:?}", start.id)),
                }
            }
            if created > 1 {
                cluster.lock().violated("I2", format!("{} began twice", start.id));
            }
        });
    }

    fn command_run(&mut self, process: &Process, run: RunId) {
        let Some(workflows) = process.with_engine(|engine| engine.workflows()) else { return };
        let command = {
            let mut cluster = self.cluster.lock();
            cluster.workflow_checks.disturbed.insert(run);
            cluster.some_command(run)
        };
        let (cluster, node) = (self.cluster.clone(), process.node());
        process.serve(async move {
            let pauses = command == RunCommand::Pause;
            if let Ok(RunChanged::Done(_)) = workflows.change(run, command).await
                && pauses
            {
                cluster.lock().run_pause_acknowledged(node, run);
            }
        });
    }

    /// At the end every run goes on.
    pub async fn resume_all_runs(&mut self, process: &Process) {
        let Some(workflows) = process.with_engine(|engine| engine.workflows()) else { return };
        let paused = self.cluster.lock().model.with_model(|model| model.controls().paused_runs);
        for run in paused {
            if let Err(error) = workflows.change(run, RunCommand::Resume).await {
                self.cluster.lock().violated("I1", format!("{run} cannot be resumed: {error}"));
            }
        }
    }
}

impl Cluster {
    fn some_workflow(&mut self, number: u64, now: Timestamp) -> Workflow {
        let on_failure = if self.chance(50) { OnFailure::Continue } else { OnFailure::FailFast };
        let mut graphs = Graphs { rng: &mut self.rng, retries: 2, timeout: TIMEOUT };
        Workflow { name: format!("some-{number}").into(), ..graphs.workflow(on_failure, now) }
    }

    fn some_command(&mut self, run: RunId) -> RunCommand {
        let tasks = self.model.with_model(|model| model.read_run(run)).map(|(_, tasks)| tasks);
        let graph = &self.workflow_checks.runs[&run];
        let paths: Vec<String> =
            tasks.unwrap_or_default().iter().map(|task| graph.path_of(&task.position)).collect();
        let path = paths[self.rng.random_range(0..paths.len())].clone();
        match self.rng.random_range(0..14) {
            0..2 => RunCommand::Cancel,
            2..6 => RunCommand::Retry,
            6 => RunCommand::Skip(path),
            7..10 => RunCommand::Pause,
            10 => RunCommand::Resume,
            11 => RunCommand::Complete(path, Some(JsonText::from_checked(r#"{"n": 1, "list": [1]}"#))),
            _ => RunCommand::RetryTask(path),
        }
    }

    /// A client hears that a run is paused. Somebody may have let it go on meanwhile.
    fn run_pause_acknowledged(&mut self, node: usize, run: RunId) {
        let is_paused = self.model.with_model(|model| {
            model.runs().get(&run).is_some_and(|run| run.progress.status == RunStatus::Paused)
        });
        if is_paused {
            self.workflow_checks.pauses += 1;
            self.checks.acknowledged(node, Forbidden::Run(run));
        }
    }
}
