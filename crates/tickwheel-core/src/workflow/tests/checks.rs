//! What makes a definition a graph.

use std::time::Instant;

use proptest::prelude::*;

use super::*;

fn faults(spec: &WorkflowSpec) -> Vec<String> {
    let faults = Graph::checked(spec, GraphLimits::default()).err().unwrap_or_default();
    faults.iter().map(|fault| format!("{} {}", fault.pointer, fault.kind)).collect()
}

#[test]
fn a_cycle_is_reported_as_its_path() {
    let tasks =
        vec![task("a", &[]), task("b", &["a", "d"]), task("c", &["b"]), task("d", &["c"]), task("e", &["d"])];
    assert_eq!(faults(&spec(tasks)), ["/tasks/1/depends_on tasks wait for each other: b -> d -> c -> b"]);
    assert_eq!(
        faults(&spec(vec![task("a", &["a"])])),
        ["/tasks/0/depends_on tasks wait for each other: a -> a"]
    );
}

#[test]
fn unknown_and_duplicate_tasks_are_named_with_their_place() {
    let tasks =
        vec![task("extract", &[]), task("load", &["exract"]), task("load", &[]), task("x", &["nobody"])];
    assert_eq!(
        faults(&spec(tasks)),
        [
            "/tasks/2/name there is another task named \"load\"",
            "/tasks/1/depends_on/0 there is no task named \"exract\"; did you mean \"extract\"?",
            "/tasks/3/depends_on/0 there is no task named \"nobody\"",
        ]
    );
}

#[test]
fn names_that_paths_could_not_read_are_refused() {
    for name in ["", "a.b", "1st", "input", "run", "item", "a b", &"x".repeat(101)] {
        assert_eq!(faults(&spec(vec![task(name, &[])])).len(), 1, "{name}");
    }
    assert_eq!(faults(&spec(vec![task("Ok_-9", &[])])), Vec::<String>::new());
}

#[test]
fn a_reference_needs_a_dependency() {
    let reads = |depends_on: &[&str], payload: &str| {
        faults(&spec(vec![task("a", &[]), task("b", &["a"]), with_payload(task("c", depends_on), payload)]))
    };
    assert_eq!(reads(&["a"], r#"{"x": {"$from": "a.result.rows"}}"#), Vec::<String>::new());
    assert!(reads(&["b"], r#"{"$from": "a.result"}"#)[0].contains("add it to depends_on"));
    assert!(reads(&["b"], r#"{"$from": "zoo.result"}"#)[0].contains("there is no task named \"zoo\""));
    assert!(reads(&["a"], r#"{"$from": "a.rows"}"#)[0].contains("say a.result"));
    assert!(reads(&["a"], r#"{"$from": "item.x"}"#)[0].contains("only inside of for_each"));
    assert!(reads(&["a"], r#"{"$from": 3}"#)[0].starts_with("/tasks/2/job/payload"));
}

#[test]
fn a_body_sees_what_its_fan_out_depends_on_and_its_own_element() {
    let inner = vec![
        with_payload(task("fetch", &[]), r#"[{"$from": "item"}, {"$from": "list.result"}]"#),
        with_payload(task("store", &["fetch"]), r#"[{"$from": "fetch.result"}, {"$from": "index"}]"#),
    ];
    let tasks =
        vec![task("list", &[]), fanned(task("each", &["list"]), "list.result", None, Each::Tasks(inner))];
    assert_eq!(faults(&spec(tasks)), Vec::<String>::new());
    let stranger = vec![with_payload(task("fetch", &[]), r#"{"$from": "other.result"}"#)];
    let tasks = vec![
        task("list", &[]),
        task("other", &[]),
        fanned(task("each", &["list"]), "list.result", None, Each::Tasks(stranger)),
    ];
    assert_eq!(faults(&spec(tasks)).len(), 1);
}

#[test]
fn tasks_that_come_first_are_waited_for_by_all_that_would_be_first() {
    let before = vec![task("setup", &[]), task("warm", &["setup"])];
    let tasks = vec![task("a", &[]), task("b", &["a"]), task("c", &["setup"])];
    let graph =
        Graph::checked(&WorkflowSpec { before, ..spec(tasks) }, GraphLimits::default()).expect("a graph");
    let parents =
        |node: u32| graph.node(node).parents.iter().map(|p| &*graph.node(*p).name).collect::<Vec<_>>();
    assert_eq!(parents(2), ["setup", "warm"]);
    assert_eq!(parents(3), ["a"]);
    assert_eq!(parents(4), ["setup", "warm"]);
}

#[test]
fn a_dependency_that_is_named_twice_is_one_and_both_ends_know_it() {
    let tasks = vec![task("a", &[]), task("b", &["a", "a"]), task("c", &["b", "a", "b"])];
    let graph = Graph::checked(&spec(tasks), GraphLimits::default()).expect("a graph");
    let run_edges = |node: u32| (graph.node(node).parents.clone(), graph.node(node).children.clone());
    assert_eq!([0, 1, 2].map(run_edges), [(vec![], vec![1, 2]), (vec![0], vec![2]), (vec![1, 0], vec![])]);
}

#[test]
fn limits_are_kept() {
    let many: Vec<TaskSpec> = (0..11).map(|n| task(&format!("t{n}"), &[])).collect();
    let limits = GraphLimits { tasks_max: 10, edges_max: 2 };
    let kinds = |spec: &WorkflowSpec| {
        let faults = Graph::checked(spec, limits).expect_err("too large");
        faults.into_iter().map(|fault| fault.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&spec(many)), [GraphFaultKind::TooMany("tasks", 10)]);
    let tight = vec![task("a", &[]), task("b", &["a"]), task("c", &["a", "b"])];
    assert_eq!(kinds(&spec(tight)), [GraphFaultKind::TooMany("dependencies", 2)]);
}

/// Ten thousand tasks with a hundred thousand dependencies: a check that is not linear takes minutes.
#[test]
fn a_large_graph_is_checked_in_a_moment() {
    let names: Vec<String> = (0..10_000).map(|n| format!("t{n}")).collect();
    let tasks = (0..10_000_usize).map(|n| {
        let parents: Vec<&str> = (n.saturating_sub(10)..n).map(|parent| names[parent].as_str()).collect();
        task(&names[n], &parents)
    });
    let spec = spec(tasks.collect());
    let begun = Instant::now();
    let graph = Graph::checked(&spec, GraphLimits::default()).expect("a graph");
    assert_eq!(graph.scopes[SCOPE_TOP].order.len(), 10_000);
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
}

proptest! {
    /// With edges from later to earlier tasks only there is no cycle, and the order keeps every edge. With any edges, a
    /// fault is a real cycle.
    #[test]
    fn an_order_keeps_every_edge_and_a_cycle_is_one(
        len in 1_usize..20,
        edges in prop::collection::vec((0_usize..20, 0_usize..20), 0..60),
        forward in any::<bool>(),
    ) {
        let name = |n: usize| format!("t{n}");
        let mut tasks: Vec<TaskSpec> = (0..len).map(|n| task(&name(n), &[])).collect();
        for (child, parent) in edges {
            let (child, parent) = (child % len, parent % len);
            if !forward || parent < child {
                tasks[child].depends_on.push(name(parent).into());
            }
        }
        let spec = spec(tasks);
        match Graph::checked(&spec, GraphLimits::default()) {
            Ok(graph) => {
                let order = &graph.scopes[SCOPE_TOP].order;
                let position = |node: u32| order.iter().position(|n| *n == node).expect("all are in it");
                for node in 0..len as u32 {
                    for parent in &graph.node(node).parents {
                        prop_assert!(position(*parent) < position(node));
                    }
                }
            }
            Err(faults) => {
                prop_assert!(!forward);
                let GraphFaultKind::Cycle(path) = &faults[0].kind else { panic!("{faults:?}") };
                prop_assert_eq!(path.first(), path.last());
                for pair in path.windows(2) {
                    let waiting = spec.tasks.iter().find(|task| *task.name == *pair[0]).expect("a task");
                    prop_assert!(waiting.depends_on.iter().any(|parent| **parent == *pair[1]));
                }
            }
        }
    }
}
