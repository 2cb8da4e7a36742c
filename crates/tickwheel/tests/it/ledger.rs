//! Schedules of the server under test, and what became of their firings.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{Answer, text, time};
use crate::e2e::{Stage, with};
use crate::eventually::{PATIENCE, eventually};

impl Stage {
    /// A schedule named `name` whose jobs call `/name`, changed by `fields`.
    pub fn schedule(&self, name: &str, fields: Value) -> Value {
        let job = json!({"type": "test", "target": {"http": {"url": self.target.url(&format!("/{name}"))}}});
        with(json!({"name": name, "every": "1s", "job": job}), fields)
    }

    /// Creates such a schedule.
    pub async fn create(&self, name: &str, fields: Value) -> Value {
        self.api.post("/api/v1/schedules", &self.schedule(name, fields)).await.expect(201).json()
    }

    /// The schedule as it is.
    pub async fn read(&self, name: &str) -> Value {
        self.api.get(&format!("/api/v1/schedules/{name}")).await.expect(200).json()
    }

    /// Does `verb` to a schedule.
    pub async fn tell(&self, name: &str, verb: &str) -> Answer {
        self.api.act(&format!("/api/v1/schedules/{name}/{verb}")).await
    }

    /// The ledger, the earliest first.
    pub async fn fires(&self, name: &str) -> Vec<Value> {
        let mut fires = self.api.list(&format!("/api/v1/schedules/{name}/fires")).await;
        fires.reverse();
        fires
    }

    /// The ledger, once it is as wanted.
    pub async fn until_fires(&self, name: &str, what: &str, holds: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let what = format!("the ledger of {name} to have {what}");
        eventually(&what, PATIENCE, async || Some(self.fires(name).await).filter(|fires| holds(fires))).await
    }
}

/// Outcome and reason of each.
pub fn outcomes(fires: &[Value]) -> Vec<(&str, &str)> {
    fires.iter().map(|fire| (text(fire, "outcome"), text(fire, "reason"))).collect()
}

/// How many came to this.
pub fn count(fires: &[Value], outcome: &str) -> usize {
    fires.iter().filter(|fire| fire["outcome"] == outcome).count()
}

/// Every second from the first record to the last has exactly one, and no job stands for two firings.
pub fn assert_no_gap_and_no_double(fires: &[Value]) {
    let mut expected = time(&fires[0], "nominal_time");
    for fire in fires {
        assert_eq!(time(fire, "nominal_time"), expected, "{fires:#?}");
        expected = time(fire, "last_nominal_time") + Duration::from_secs(1);
    }
    let own: Vec<&str> = fires
        .iter()
        .filter(|fire| fire["outcome"] != "coalesced")
        .filter_map(|fire| fire["job_id"].as_str())
        .collect();
    assert_eq!(own.iter().collect::<BTreeSet<_>>().len(), own.len(), "{fires:#?}");
}
