//! The duties of the resource manager, and the choice of its gateway.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use selvedge_core::{Context, Input, Member, NodeId, Span};
use selvedge_replica::{Command, Configuration, Voter};

use super::Gateway;
use super::event::{Event, Timer};
use crate::{Hops, Tables, TaskId, Update};

impl Gateway {
    /// Takes up or lays down the duties of a resource manager, if the replica's leader has changed.
    pub(super) fn look_whether_it_manages(&mut self, cx: &mut Context<'_, Self>) {
        let manages = self.replica.machine().leads() && self.tables().is_some();
        if manages == self.manages {
            return;
        }
        self.manages = manages;
        self.missed = 0;
        self.watch_gateways(cx);
        let open = self.tables().into_iter().flat_map(Tables::open);
        let open: Vec<TaskId> = open.map(|it| it.0).collect();
        if !manages {
            cx.event(Event::Deposed);
            for task in open {
                cx.disarm(Timer::Offload(task));
            }
            return;
        }
        cx.event(Event::Leading);
        for task in open {
            self.expect_answer(task, cx);
        }
        self.look_for_orphans(cx);
        self.on_followers_changed(cx);
        self.look_at_voters(cx);
    }

    /// Arms the timer at which the manager gives a task to another unit, unless the present one answers.
    pub(super) fn expect_answer(&self, task: TaskId, cx: &mut Context<'_, Self>) {
        let Some(tables) = self.tables().filter(|_| self.manages) else {
            return;
        };
        let electors = tables.assignment(task).into_iter();
        let electors = electors.flat_map(|it| it.electors.iter());
        let periods = electors.filter_map(|it| tables.follower(it.id));
        let longest = periods.map(|it| it.duty.period()).max();
        let load = tables.load_of(task);
        let after = longest.map_or(self.config.settle, |it| self.config.offload(it, load));
        cx.arm(Timer::Offload(task), after);
    }

    pub(super) fn on_offload_tick(&mut self, task: TaskId, cx: &mut Context<'_, Self>) {
        let tables = self.tables().filter(|_| self.manages);
        let Some(after) = tables
            .and_then(|it| it.open_task(task))
            .map(|it| it.attempts)
        else {
            return;
        };
        self.expect_answer(task, cx); // Repeats the proposal, which may be lost.
        let retry = Update::Retry { task, after };
        let can_retry = self.tables().is_some_and(|it| it.known(&retry).is_none());
        self.counters.0.retries += u64::from(can_retry);
        self.try_to_propose(retry, cx);
    }

    /// Proposes to give the tasks that wait for a unit to one.
    pub(super) fn retry_waiting(&mut self, cx: &mut Context<'_, Self>) {
        let tables = self.tables().filter(|it| self.manages && it.units() > 0);
        let open = tables.into_iter().flat_map(Tables::open);
        let waiting = open.filter(|it| it.1.assignment.is_none());
        let waiting: Vec<(TaskId, u16)> = waiting.map(|it| (it.0, it.1.attempts)).collect();
        for (task, after) in waiting {
            self.try_to_propose(Update::Retry { task, after }, cx);
        }
    }

    /// Checks the units, because followers arrived or left.
    pub(super) fn on_followers_changed(&mut self, cx: &mut Context<'_, Self>) {
        self.has_changed = true;
        self.look_at_units(cx);
    }

    /// Forms broken units again, after followers had time to arrive and leave.
    pub(super) fn look_at_units(&mut self, cx: &mut Context<'_, Self>) {
        let tables = self.tables().filter(|_| self.manages);
        if !self.is_cluster_due && tables.is_some_and(Tables::want_clustering) {
            self.is_cluster_due = true;
            cx.arm(Timer::Cluster, self.config.settle);
        }
    }

    pub(super) fn on_cluster_tick(&mut self, cx: &mut Context<'_, Self>) {
        self.is_cluster_due = false;
        if self.tables().is_some_and(Tables::want_clustering) {
            self.cluster(cx);
        }
    }

    fn cluster(&mut self, cx: &mut Context<'_, Self>) {
        if let Some(tables) = self.tables().filter(|_| self.manages) {
            let after = tables.clustered();
            self.try_to_propose(Update::Cluster { after }, cx);
        }
    }

    /// The periodic review.
    pub(super) fn on_review_tick(&mut self, cx: &mut Context<'_, Self>) {
        cx.arm(Timer::Review, self.config.review);
        self.forget_clients(cx);
        if !self.manages {
            return self.look_for_manager(cx);
        }
        if self.has_changed {
            self.cluster(cx);
        }
        self.retry_waiting(cx);
        self.forget_distances(cx);
        self.look_at_voters(cx);
        // The messages of this gateway as leader would keep the other one from standing.
        if self.replica.machine().waiting() == 0 {
            self.look_for_better_manager(cx);
        }
    }

    /// Forgets the distances of gateways that are no voters any more, because they take room. Such a gateway
    /// counts as one link away, as any gateway of unknown distance.
    fn forget_distances(&mut self, cx: &mut Context<'_, Self>) {
        let named = self.replica.machine().configuration().members();
        let named: BTreeSet<NodeId> = named.map(|it| it.member.id).collect();
        let is_named = |it: &Hops| named.contains(&it.one) && named.contains(&it.other);
        let far = self.tables().into_iter().flat_map(Tables::far);
        let former: Vec<Hops> = far.filter(|it| !is_named(it)).collect();
        for former in former {
            let hops = Hops { hops: 1, ..former };
            self.try_to_propose(Update::Hops(hops), cx);
        }
    }

    /// Stands for election if there is no manager. Open tasks need one, and a replica without requests elects
    /// none.
    pub(super) fn look_for_manager(&mut self, cx: &mut Context<'_, Self>) {
        let replica = self.replica.machine();
        let is_led = replica
            .leader()
            .is_some_and(|it| !self.ended.contains(&it.0));
        if !is_led && replica.votes() {
            let stand = Input::Command(Command::Campaign);
            // Refused if it stands already, or holds no tables. It tries again at the next review.
            let _refused = self.step(stand, cx);
        }
    }

    /// Hands over to the gateway from which followers are reached over the fewest links (PCM, section 4.2).
    fn look_for_better_manager(&mut self, cx: &mut Context<'_, Self>) {
        let voters = self.replica.machine().configuration().members();
        let here = voters.filter(|it| !it.is_witness && !self.ended.contains(&it.member.id));
        let here: Vec<NodeId> = here.map(|it| it.member.id).collect();
        let me = self.me.id;
        let best = self.tables().and_then(|it| it.best_manager(&here, me));
        if let Some(best) = best.filter(|it| *it != me) {
            let hand_over = Input::Command(Command::TransferLeadership(best));
            if self.step(hand_over, cx).is_ok() {
                self.counters.0.handed_over += 1;
            }
        }
    }

    /// Returns true if a gateway watches its followers itself: it is up, and holds the tables.
    pub(super) fn serves(&self, gateway: NodeId) -> bool {
        let configuration = self.replica.machine().configuration();
        let holds = configuration
            .voter(gateway)
            .is_some_and(|it| !it.is_witness);
        holds && !self.ended.contains(&gateway)
    }

    /// Makes the manager watch the followers of gateways that do not watch them themselves.
    pub(super) fn look_for_orphans(&mut self, cx: &mut Context<'_, Self>) {
        let tables = self.tables().filter(|_| self.manages).into_iter();
        let gateways = tables.flat_map(Tables::gateways).map(|it| it.0);
        let left: Vec<NodeId> = gateways.filter(|it| !self.serves(*it)).collect();
        for gateway in left {
            self.on_gateway_gone(gateway, cx);
        }
    }

    /// Makes the manager purge the followers of a gateway that has failed, unless they attach themselves to
    /// another one in time. O(n) for n followers.
    pub(super) fn on_gateway_gone(&mut self, gateway: NodeId, cx: &mut Context<'_, Self>) {
        let tables = self.tables().filter(|_| self.manages);
        let all = tables.into_iter().flat_map(Tables::followers);
        let orphans = all.filter(|it| it.gateway == gateway);
        let orphans: Vec<(NodeId, Span)> = orphans
            .map(|it| (it.member.id, self.config.patience(it.duty)))
            .collect();
        for (id, after) in orphans {
            cx.arm(Timer::Purge(id), after);
        }
    }

    /// Proposes the connected gateways as voters, under [`Voting::Dynamic`](super::Voting::Dynamic).
    pub(super) fn look_at_voters(&mut self, cx: &mut Context<'_, Self>) {
        if !self.is_dynamic() || !self.manages {
            return;
        }
        let present = self.replica.machine().configuration();
        let is_here = |id: NodeId| !self.ended.contains(&id);
        // Voters that stay keep their order and their role.
        let remain = present.voters.iter().filter(|it| is_here(it.member.id));
        let mut voters: Vec<Voter> = remain
            .map(|it| Voter {
                member: self
                    .gateways
                    .get(&it.member.id)
                    .copied()
                    .unwrap_or(it.member),
                ..*it
            })
            .collect();
        let is_new = |it: &Member| is_here(it.id) && present.voter(it.id).is_none();
        let new = self.gateways.values().copied().filter(is_new);
        voters.extend(new.map(Voter::new));
        // Without a quorum of the present voters the change could not be decided.
        if voters == present.voters || !self.has_quorum() {
            return;
        }
        let next = Configuration {
            voters,
            ..present.clone()
        };
        // Refused while another change is under way. The next review tries again.
        let _refused = self.step(Input::Command(Command::Configure(next)), cx);
    }
}
