//! Workflow definitions as diagrams: Mermaid, and DOT for Graphviz.
//!
//! A solid arrow is a dependency on success, a dashed one on the end, a dotted one (with a label) on failure. A double
//! frame is a fan-out; its tasks are drawn inside. A dependency that does not exist is not drawn: this module does not
//! check definitions.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use crate::workflow::{SubmitWorkflow, TriggerRule, WorkflowTask};

/// The definition as a Mermaid flowchart.
pub fn mermaid(workflow: &SubmitWorkflow) -> String {
    let mut text = String::from("flowchart TD\n");
    written(Picture::of(workflow).write_mermaid(&mut text));
    text
}

/// The definition as a graph of Graphviz.
pub fn dot(workflow: &SubmitWorkflow) -> String {
    let mut text = String::new();
    written(Picture::of(workflow).write_dot(&mut text));
    text
}

fn written(result: fmt::Result) {
    result.expect("writing to a string cannot fail");
}

/// What is drawn.
struct Picture<'w> {
    title: &'w str,
    groups: Vec<Group<'w>>,
    arrows: Vec<Arrow>,
}

/// Tasks that are drawn together.
struct Group<'w> {
    /// The title of the frame. Without one, there is no frame.
    title: Option<&'static str>,
    shapes: Vec<Shape<'w>>,
}

/// A task.
struct Shape<'w> {
    id: usize,
    task: &'w WorkflowTask,
    inner: Vec<Shape<'w>>,
}

struct Arrow {
    from: usize,
    to: usize,
    rule: TriggerRule,
}

/// Assigns ids and knows which way the arrows go.
#[derive(Default)]
struct Pen {
    used: usize,
    arrows: Vec<Arrow>,
}

impl Pen {
    fn shapes<'w>(
        &mut self,
        tasks: &'w [WorkflowTask],
        names: &mut HashMap<&'w str, usize>,
    ) -> Vec<Shape<'w>> {
        let first = self.used;
        self.used += tasks.len();
        names.extend(tasks.iter().enumerate().map(|(place, task)| (task.name.as_str(), first + place)));
        let shape = |(place, task): (usize, &'w WorkflowTask)| {
            let id = first + place;
            let rule = task.trigger_rule.unwrap_or(TriggerRule::AllSucceeded);
            let parents = task.depends_on.iter().filter_map(|name| names.get(name.as_str()));
            self.arrows.extend(parents.map(|parent| Arrow { from: *parent, to: id, rule }));
            let inner = self.shapes(task.tasks.as_deref().unwrap_or_default(), &mut HashMap::new());
            Shape { id, task, inner }
        };
        tasks.iter().enumerate().map(shape).collect()
    }
}

impl<'w> Picture<'w> {
    fn of(workflow: &'w SubmitWorkflow) -> Self {
        let mut pen = Pen::default();
        let framed = !(workflow.before.is_empty() && workflow.after.is_empty());
        let mut names = HashMap::new();
        let mut group =
            |title: &'static str, tasks: &'w [WorkflowTask], names: &mut HashMap<&'w str, usize>| Group {
                title: framed.then_some(title),
                shapes: pen.shapes(tasks, names),
            };
        let mut groups = vec![
            group("before", &workflow.before, &mut names),
            group("tasks", &workflow.tasks, &mut names),
            group("after", &workflow.after, &mut HashMap::new()),
        ];
        groups.retain(|group| !group.shapes.is_empty());
        Self { title: &workflow.name, groups, arrows: pen.arrows }
    }

    fn write_mermaid(&self, out: &mut String) -> fmt::Result {
        for group in &self.groups {
            let depth = 1 + usize::from(group.title.is_some());
            if let Some(title) = group.title {
                writeln!(out, "    subgraph {title}")?;
            }
            group.shapes.iter().try_for_each(|shape| shape.write_mermaid(out, depth))?;
            if group.title.is_some() {
                writeln!(out, "    end")?;
            }
        }
        for pair in self.groups.windows(2) {
            if let [Group { title: Some(from), .. }, Group { title: Some(to), .. }] = pair {
                writeln!(out, "    {from} ==> {to}")?;
            }
        }
        for Arrow { from, to, rule } in &self.arrows {
            let arrow = match rule {
                TriggerRule::AllSucceeded => "-->",
                TriggerRule::AllDone => "-.->",
                TriggerRule::AnyFailed => "-.->|failed|",
            };
            writeln!(out, "    n{from} {arrow} n{to}")?;
        }
        Ok(())
    }

    fn write_dot(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "digraph {} {{", quoted(self.title))?;
        writeln!(out, "    compound=true; node [shape=box];")?;
        for group in &self.groups {
            let depth = 1 + usize::from(group.title.is_some());
            if let Some(title) = group.title {
                writeln!(out, "    subgraph cluster_{title} {{ label={title};")?;
            }
            group.shapes.iter().try_for_each(|shape| shape.write_dot(out, depth))?;
            if group.title.is_some() {
                writeln!(out, "    }}")?;
            }
        }
        for pair in self.groups.windows(2) {
            if let [Group { title: Some(from), shapes: first }, Group { title: Some(to), shapes: second }] =
                pair
            {
                let (tail, head) = (first[0].leaf(), second[0].leaf());
                let ends = format!("ltail=cluster_{from}, lhead=cluster_{to}");
                writeln!(out, "    n{tail} -> n{head} [{ends}, style=bold];")?;
            }
        }
        let shapes: HashMap<usize, &Shape<'_>> =
            self.groups.iter().flat_map(|group| all(&group.shapes)).collect();
        for Arrow { from, to, rule } in &self.arrows {
            let (tail, head) = (shapes[from], shapes[to]);
            let style = match rule {
                TriggerRule::AllSucceeded => "style=solid",
                TriggerRule::AllDone => "style=dashed",
                TriggerRule::AnyFailed => "style=dotted, label=failed",
            };
            let (tail_end, head_end) = (tail.cluster("ltail"), head.cluster("lhead"));
            writeln!(out, "    n{} -> n{} [{style}{tail_end}{head_end}];", tail.leaf(), head.leaf())?;
        }
        writeln!(out, "}}")
    }
}

/// Every shape by its id, including those inside others.
fn all<'s, 'w>(shapes: &'s [Shape<'w>]) -> Vec<(usize, &'s Shape<'w>)> {
    let with_inner = |shape: &'s Shape<'w>| std::iter::once((shape.id, shape)).chain(all(&shape.inner));
    shapes.iter().flat_map(with_inner).collect()
}

impl Shape<'_> {
    /// The text of a shape, line by line.
    fn lines(&self) -> Vec<String> {
        let task = self.task;
        let mut lines = vec![task.name.clone()];
        lines.extend(task.for_each.as_ref().map(|path| format!("for each {}", path.0)));
        lines.extend(task.when.as_ref().map(|condition| format!("when {condition}")));
        lines
    }

    fn write_mermaid(&self, out: &mut String, depth: usize) -> fmt::Result {
        let indent = "    ".repeat(depth);
        let label: Vec<String> = self.lines().iter().map(|line| entities(line)).collect();
        let (id, label) = (self.id, label.join("<br/>"));
        if !self.inner.is_empty() {
            writeln!(out, "{indent}subgraph n{id}[\"{label}\"]")?;
            self.inner.iter().try_for_each(|shape| shape.write_mermaid(out, depth + 1))?;
            return writeln!(out, "{indent}end");
        }
        match self.task.for_each {
            Some(_) => writeln!(out, "{indent}n{id}[[\"{label}\"]]"),
            None => writeln!(out, "{indent}n{id}[\"{label}\"]"),
        }
    }

    fn write_dot(&self, out: &mut String, depth: usize) -> fmt::Result {
        let indent = "    ".repeat(depth);
        let (id, label) = (self.id, quoted(&self.lines().join("\n")));
        if !self.inner.is_empty() {
            writeln!(out, "{indent}subgraph cluster_n{id} {{ label={label}; peripheries=2;")?;
            self.inner.iter().try_for_each(|shape| shape.write_dot(out, depth + 1))?;
            return writeln!(out, "{indent}}}");
        }
        let frame = if self.task.for_each.is_some() { ", peripheries=2" } else { "" };
        writeln!(out, "{indent}n{id} [label={label}{frame}];")
    }

    /// A node to attach an arrow to: Graphviz has no arrows between clusters.
    fn leaf(&self) -> usize {
        self.inner.first().map_or(self.id, Shape::leaf)
    }

    /// The cluster at whose border an arrow to the inside ends.
    fn cluster(&self, end: &str) -> String {
        if self.inner.is_empty() { String::new() } else { format!(", {end}=cluster_n{}", self.id) }
    }
}

/// Text, escaped for Mermaid's quotes.
fn entities(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '#' => safe.push_str("#35;"),
            '"' => safe.push_str("#quot;"),
            '<' => safe.push_str("#lt;"),
            '>' => safe.push_str("#gt;"),
            '&' => safe.push_str("#amp;"),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

/// Text as a DOT string.
fn quoted(text: &str) -> String {
    let inside = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{inside}\"")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn etl() -> SubmitWorkflow {
        serde_json::from_value(json!({
            "name": "etl",
            "before": [{"name": "check", "job": {}}],
            "tasks": [
                {"name": "extract", "job": {}},
                {"name": "load", "depends_on": ["extract", "nobody"], "for_each": "extract.result", "tasks": [
                    {"name": "copy", "job": {}},
                    {"name": "verify", "depends_on": ["copy"], "job": {}}]},
                {"name": "alert", "depends_on": ["load"], "trigger_rule": "any_failed", "job": {}},
                {"name": "report", "depends_on": ["load"], "trigger_rule": "all_done", "for_each": "input.who",
                 "when": "input.who != \"nobody\"", "job": {}}],
            "after": [{"name": "clean", "job": {}}],
        }))
        .expect("well-formed")
    }

    #[test]
    fn mermaid_shows_groups_fan_outs_and_rules() {
        let expected = r#"flowchart TD
    subgraph before
        n0["check"]
    end
    subgraph tasks
        n1["extract"]
        subgraph n2["load<br/>for each extract.result"]
            n5["copy"]
            n6["verify"]
        end
        n3["alert"]
        n4[["report<br/>for each input.who<br/>when input.who != #quot;nobody#quot;"]]
    end
    subgraph after
        n7["clean"]
    end
    before ==> tasks
    tasks ==> after
    n1 --> n2
    n5 --> n6
    n2 -.->|failed| n3
    n2 -.-> n4
"#;
        assert_eq!(mermaid(&etl()), expected);
    }

    #[test]
    fn dot_ties_arrows_to_the_inside_of_clusters() {
        let expected = r#"digraph "etl" {
    compound=true; node [shape=box];
    subgraph cluster_before { label=before;
        n0 [label="check"];
    }
    subgraph cluster_tasks { label=tasks;
        n1 [label="extract"];
        subgraph cluster_n2 { label="load\nfor each extract.result"; peripheries=2;
            n5 [label="copy"];
            n6 [label="verify"];
        }
        n3 [label="alert"];
        n4 [label="report\nfor each input.who\nwhen input.who != \"nobody\"", peripheries=2];
    }
    subgraph cluster_after { label=after;
        n7 [label="clean"];
    }
    n0 -> n1 [ltail=cluster_before, lhead=cluster_tasks, style=bold];
    n1 -> n7 [ltail=cluster_tasks, lhead=cluster_after, style=bold];
    n1 -> n5 [style=solid, lhead=cluster_n2];
    n5 -> n6 [style=solid];
    n5 -> n3 [style=dotted, label=failed, ltail=cluster_n2];
    n5 -> n4 [style=dashed, ltail=cluster_n2];
}
"#;
        assert_eq!(dot(&etl()), expected);
    }

    #[test]
    fn tasks_by_themselves_have_no_frame_around_them() {
        let plain = serde_json::from_value(json!({"name": "w", "tasks": [
            {"name": "a", "job": {}}, {"name": "b", "depends_on": ["a"], "job": {}}]}));
        let picture = mermaid(&plain.expect("well-formed"));
        assert_eq!(picture, "flowchart TD\n    n0[\"a\"]\n    n1[\"b\"]\n    n0 --> n1\n");
    }

    #[test]
    fn names_cannot_break_out_of_their_labels() {
        let odd = serde_json::from_value(json!({"name": "a\"]; x", "tasks": [
            {"name": "\"]<b>#&\n\\", "job": {}}]}));
        let odd = odd.expect("well-formed");
        assert_eq!(mermaid(&odd), "flowchart TD\n    n0[\"#quot;]#lt;b#gt;#35;#amp; \\\"]\n");
        assert!(dot(&odd).contains(r#"n0 [label="\"]<b>#&\n\\"];"#), "{}", dot(&odd));
        assert!(dot(&odd).starts_with(r#"digraph "a\"]; x" {"#));
    }
}
