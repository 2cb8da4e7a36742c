//! What goes wrong: crashes, freezes, lost connections, clocks that are set, and nodes that disagree about who owns
//! what.

use rand::RngExt;
use tickwheel_core::Partition;
use tickwheel_core::ports::PartitionSet;

use crate::cluster::{Cluster, Happening};
use crate::injected::FaultKind;
use crate::workers::RemoteWorker;
use crate::world::World;
use crate::{LEASE, NODES};

/// How far a clock is set, in milliseconds.
const CLOCK_STEP_MS_MAX: i64 = 4_000;

impl World {
    /// Something goes wrong somewhere.
    pub fn fault_strikes(&mut self) {
        let (node, which) = {
            let mut cluster = self.cluster.lock();
            (cluster.rng.random_range(0..NODES), cluster.rng.random_range(0..14))
        };
        match which {
            0..4 => self.crash(node),
            4..7 => self.freeze(node),
            7..9 => self.cluster.lock().step_the_clock(node),
            9..11 => self.cluster.lock().cut_off(node),
            _ => self.change_ownership(node),
        }
    }

    /// From now on every node is up, awake, connected and an owner of everything: the store alone keeps them apart.
    pub fn faults_are_over(&mut self) {
        {
            let mut cluster = self.cluster.lock();
            cluster.cut_off = [false; NODES];
            // And all clocks agree, and none is behind what one has shown: what was to fire until then is known.
            for node in 0..NODES {
                cluster.now_of(node);
            }
            cluster.clocks_ahead_ms = [cluster.latest.as_millis() - cluster.real().as_millis(); NODES];
        }
        for node in 0..NODES {
            if self.nodes[node].is_up() {
                self.nodes[node].thaw();
            } else {
                self.nodes[node].start();
            }
            self.own(node, PartitionSet::ALL);
        }
        self.workers.iter_mut().for_each(RemoteWorker::recover);
    }

    /// The process is gone. Sometimes that is known at once (its connection closed), sometimes only by its lease.
    pub fn crash(&mut self, node: usize) {
        if !self.nodes[node].is_up() {
            return;
        }
        self.nodes[node].crash();
        let mut cluster = self.cluster.lock();
        cluster.injected.count(FaultKind::Crash);
        let is_noticed = cluster.chance(50);
        if let Some(session) = cluster.sessions[node].filter(|_| is_noticed) {
            cluster.injected.count(FaultKind::CrashNoticed);
            cluster.model.with_model(|model| model.kill_session(session));
        }
        let back_in = cluster.rng.random_range(10..3_000);
        cluster.at(back_in, Happening::Restart(node));
    }

    /// A job takes the process with it that runs it.
    pub fn die_of_job(&mut self, node: usize, life: u32) {
        let is_over = self.cluster.lock().faults_are_over();
        if self.nodes[node].life == life && self.nodes[node].is_up() && !is_over {
            self.cluster.lock().injected.count(FaultKind::KilledByJob);
            self.crash(node);
        }
    }

    /// The process stands still, up to many leases long, and then goes on as if nothing had happened.
    pub fn freeze(&mut self, node: usize) {
        self.nodes[node].freeze();
        let mut cluster = self.cluster.lock();
        cluster.injected.count(FaultKind::Freeze);
        let for_ms = cluster.rng.random_range(10..LEASE.as_millis() as u64 * 4);
        cluster.at(for_ms, Happening::Thaw { node, life: self.nodes[node].life });
    }

    /// The node believes in other partitions than before, whatever the others believe.
    fn change_ownership(&mut self, node: usize) {
        let partitions = {
            let mut cluster = self.cluster.lock();
            cluster.injected.count(FaultKind::OwnershipChange);
            cluster.some_partitions()
        };
        self.own(node, partitions);
    }

    fn own(&mut self, node: usize, partitions: PartitionSet) {
        if let Some(process) = self.nodes[node].running() {
            let owner = process.clone();
            process.serve(async move {
                let change = owner.with_engine(|engine| engine.change_ownership(partitions));
                if let Some(change) = change {
                    change.await;
                }
            });
        }
    }
}

impl Cluster {
    /// Now and then a process stands still at the worst of moments: what was taken for it is not started yet.
    pub fn freeze_in_claim(&mut self, node: usize) {
        if self.goes_wrong(FaultKind::FreezeInClaim, 3) {
            self.freezes_wanted.insert(node);
            self.changed.notify_one();
        }
    }

    /// Somebody sets the clock of a node, forwards or back. What is due follows it; leases do not.
    fn step_the_clock(&mut self, node: usize) {
        self.injected.count(FaultKind::ClockStep);
        self.clocks_ahead_ms[node] += self.rng.random_range(-CLOCK_STEP_MS_MAX..CLOCK_STEP_MS_MAX);
    }

    /// The node does not reach the store, up to two leases long.
    fn cut_off(&mut self, node: usize) {
        self.injected.count(FaultKind::CutOff);
        self.cut_off[node] = true;
        let for_ms = self.rng.random_range(10..LEASE.as_millis() as u64 * 2);
        self.at(for_ms, Happening::Reconnect(node));
    }

    fn some_partitions(&mut self) -> PartitionSet {
        let mut partitions = PartitionSet::ALL;
        for partition in 0..Partition::COUNT {
            if self.chance(30) {
                partitions = partitions.without(Partition(partition));
            }
        }
        partitions
    }
}
