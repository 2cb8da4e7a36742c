//! What goes wrong: crashes, freezes, and nodes that disagree about who owns what.

use std::time::Duration;

use rand::RngExt;
use tickwheel_core::machine::Event;
use tickwheel_core::ports::PartitionSet;
use tickwheel_core::{Partition, SessionId, Timestamp};

use super::LEASE;
use super::injected::FaultKind;
use super::node::Node;
use super::world::{Happening, NODES, ToNode, World};
use crate::fixtures::{session, session_id};

/// The machines of a cluster are not alike: here jobs find a free slot, there they wait for their turn.
const SLOTS: [usize; NODES] = [20, 4, 20];

impl World {
    /// Something goes wrong somewhere.
    pub(super) fn fault_strikes(&mut self) {
        let node = self.rng.random_range(0..self.nodes.len());
        match self.rng.random_range(0..12) {
            0..4 => self.crash(node),
            4..7 => self.freeze(node),
            7..9 => self.step_the_clock(node),
            _ => self.change_ownership(node),
        }
    }

    /// From now on every node is up, awake and an owner of everything: the store alone keeps them apart.
    pub(super) fn faults_are_over(&mut self) {
        // And all clocks agree, and none is behind what one has shown: what was to fire until then is known.
        (0..NODES).for_each(|node| self.read_the_clock_of(node));
        self.clocks_ahead_ms = [self.latest.as_millis() - self.real.as_millis(); NODES];
        self.now = self.latest;
        for node in 0..self.nodes.len() {
            if self.nodes[node].up {
                self.nodes[node].frozen_until = self.nodes[node].frozen_until.min(self.real);
                self.tell(node, ToNode::Machine(Event::OwnershipChanged(PartitionSet::ALL)));
                let now = self.now;
                self.nodes[node].schedule_timer.change_ownership(PartitionSet::ALL, now);
            } else {
                self.start(node, PartitionSet::ALL);
            }
        }
    }

    /// The process is gone. Sometimes that is known at once (its connection closed), sometimes only by its lease.
    fn crash(&mut self, node: usize) {
        if !self.nodes[node].up {
            return;
        }
        self.nodes[node].up = false;
        self.injected.count(FaultKind::Crash);
        if self.chance(50) {
            self.injected.count(FaultKind::CrashNoticed);
            let session = self.nodes[node].session;
            self.model.kill_session(session);
        }
        let back_in = self.rng.random_range(10..3_000);
        self.at(back_in, Happening::Restart(node));
    }

    /// The process stands still, up to many leases long, and then goes on as if nothing had happened.
    fn freeze(&mut self, node: usize) {
        let for_ms = self.rng.random_range(10..LEASE.as_millis() as u64 * 4);
        self.nodes[node].frozen_until = self.real + Duration::from_millis(for_ms);
        self.injected.count(FaultKind::Freeze);
    }

    /// Now and then that happens at the worst of moments: what was taken is not started yet.
    pub(super) fn freeze_in_claim(&mut self, node: usize) {
        if self.chance(10) && self.goes_wrong(FaultKind::FreezeInClaim) {
            self.freeze(node);
        }
    }

    /// A job takes the process with it that runs it.
    pub(super) fn die_of_job(&mut self, node: usize, life: u32) {
        if self.nodes[node].life == life && self.nodes[node].up && self.real < self.faults_over_at() {
            self.injected.count(FaultKind::KilledByJob);
            self.crash(node);
        }
    }

    /// Somebody sets the clock of a node, forwards or back. What is due follows it; leases do not.
    fn step_the_clock(&mut self, node: usize) {
        self.injected.count(FaultKind::ClockStep);
        self.clocks_ahead_ms[node] += self.rng.random_range(-4_000..4_000);
    }

    /// From now on it is what the clock of this node shows.
    pub(super) fn read_the_clock_of(&mut self, node: usize) {
        self.now = Timestamp::from_millis(self.real.as_millis() + self.clocks_ahead_ms[node]);
        self.latest = self.latest.max(self.now);
    }

    /// The node believes in other partitions than before, whatever the others believe.
    fn change_ownership(&mut self, node: usize) {
        self.injected.count(FaultKind::OwnershipChange);
        let partitions = self.some_partitions();
        self.tell(node, ToNode::Machine(Event::OwnershipChanged(partitions)));
        self.read_the_clock_of(node);
        let now = self.now;
        self.nodes[node].schedule_timer.change_ownership(partitions, now);
    }

    /// A process starts with empty hands.
    pub(super) fn restart(&mut self, node: usize) {
        if !self.nodes[node].up {
            let partitions = self.some_partitions();
            self.start(node, partitions);
        }
    }

    /// A process starts as the owner of `partitions`.
    pub(super) fn start(&mut self, node: usize, partitions: PartitionSet) {
        self.read_the_clock_of(node);
        let life = self.nodes.get(node).map_or(0, |node| node.life + 1);
        let id = self.open_session();
        let mut fresh = Node::start(life, SLOTS[node], id, partitions, (self.now, self.real));
        fresh.machine.restore(self.model.controls());
        if node < self.nodes.len() {
            self.nodes[node] = fresh;
        } else {
            self.nodes.push(fresh);
        }
        for message in [
            ToNode::Machine(Event::Tick),
            ToNode::Renew,
            ToNode::Reap,
            ToNode::ReadControls,
            ToNode::Schedules,
            ToNode::Reconcile,
        ] {
            self.tell(node, message);
        }
    }

    /// A fresh session in the store.
    pub(super) fn open_session(&mut self) -> SessionId {
        let number = self.next_number();
        self.model.open_session(session(number, self.real + LEASE)).expect("the number is fresh");
        session_id(number)
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
