//! The stop switch and the queues of the simulated cluster, and which runs are paused: turned through one node, heard
//! of by the others when they read them next.

use rand::RngExt;
use tickwheel_core::machine::Event;

use super::client::QUEUES;
use super::world::{ToNode, World};

/// How often a node reads them, in milliseconds.
const READ_INTERVAL_MS: u64 = 400;

impl World {
    pub(super) fn turn_stop_switch(&mut self) {
        let halted = self.chance(40);
        self.set_halted(halted);
    }

    pub(super) fn set_halted(&mut self, halted: bool) {
        self.model.set_halted(halted);
        self.checks.halt_acknowledged(halted);
        let node = self.some_node();
        self.tell(node, ToNode::Machine(Event::HaltChanged(halted)));
    }

    pub(super) fn pause_some_queue(&mut self) {
        let queue = QUEUES[self.rng.random_range(0..QUEUES.len())];
        let paused = self.chance(40);
        self.set_paused(queue, paused);
    }

    pub(super) fn set_paused(&mut self, queue: &str, paused: bool) {
        self.model.set_queue_paused(queue, paused);
        self.checks.pause_acknowledged(queue, paused);
        let node = self.some_node();
        self.tell(node, ToNode::Machine(Event::QueuePauseChanged(queue.into(), paused)));
    }

    /// The answer may be old when it arrives.
    pub(super) fn read_controls(&mut self, node: usize) {
        let controls = self.model.controls();
        self.tell(node, ToNode::Machine(Event::ControlsRead(controls)));
        self.later(node, READ_INTERVAL_MS, ToNode::ReadControls);
    }
}
