//! A program without std that uses every crate.
//!
//! `cargo check` of a `no_std` crate passes on a host even when one of its dependencies uses std.
//! Linking does not: std brings a panic handler, and a program can have only one. So this program
//! brings its own, and links only while none of its dependencies pulls std in.
//!
//! CONTRIBUTING.md shows an example of a failure.

#![no_std]
#![no_main]

extern crate alloc;

mod bare;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::{c_char, c_int};

use bare::Steps;
use selvedge_groups::{
    GroupId, Place, Start,
    store::{Expected, Operation, StoreCommand, StoreEvent, Stored},
};

use selvedge::{Node, decode, encode};
use selvedge_camera::Camera;
use selvedge_camera::sections::{self, Name, Sections};
use selvedge_celect::{Celect, Lowest};
use selvedge_core::{
    Choose, Delta, Driver, Effect, Input, Machine, Member, NodeId, Ratio, Sha256Sortition,
    Sortition, Span, Time, WeightTree,
};
use selvedge_kgroup::{Kgroup, Site};
use selvedge_membership::{Command, Config, Membership};
use selvedge_replica::{Configuration, Replica, State};

/// The entry point for the C library's start code. Returns 0 when every crate passed.
#[unsafe(no_mangle)]
extern "C" fn main(_count: c_int, _arguments: *const *const c_char) -> c_int {
    let parts = [
        core_works(),
        membership_works(),
        camera_works(),
        sections_work(),
        celect_works(),
        replica_works(),
        kgroup_works(),
        pcm_works(),
        routine_works(),
        safehome_works(),
        node_works(),
    ];
    c_int::from(!parts.into_iter().all(|works| works))
}

fn core_works() -> bool {
    let mut tree = WeightTree::with_capacity(3);
    let ids: Vec<NodeId> = (1..=3).map(NodeId).collect();
    for id in &ids {
        tree.push(id.0);
    }
    let drawn = Steps(0).weighted(&tree);
    let first = ids
        .iter()
        .min_by_key(|&&id| Sha256Sortition.rank(b"draw", id));
    drawn.is_some() && first.is_some()
}

/// A node asks a seed to be let in, and the seed answers.
fn membership_works() -> bool {
    let (joiner, seed) = (Member::new(1, 1), Member::new(2, 1));
    let mut choices = Steps(0);
    let mut node = |me, seeds| {
        let mut driver = Driver::new(Membership::new(me, Config::radio()).ok()?);
        let join = Input::Command(Command::Join { seeds });
        let mut sent = Vec::new();
        driver
            .step_into(Time::ZERO, &mut choices, join, &mut sent)
            .ok()?;
        Some((driver, sent))
    };
    let (Some((mut seed, _)), Some((_, asked))) =
        (node(seed, Vec::new()), node(joiner, [seed.id].into()))
    else {
        return false;
    };
    let mut answered = false;
    for effect in asked {
        if let Effect::Send { message, .. } = effect {
            let input = Input::Message {
                from: joiner,
                message,
            };
            let taken = seed.step(Time::ZERO, &mut Steps(0), input, |effect| {
                answered |= matches!(effect, Effect::Send { to, .. } if to == joiner);
            });
            answered &= taken.is_ok();
        }
    }
    answered
}

/// A count that a group holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
struct Count(u32);

impl State for Count {
    type Update = u32;
    type Outcome = u32;

    fn apply(&mut self, add: &u32) -> u32 {
        self.0 = self.0.saturating_add(*add);
        self.0
    }
}

/// A group of one decides by itself.
fn replica_works() -> bool {
    let me = Member::new(1, 1);
    let first = Configuration::of([me]);
    let Ok(member) = Replica::new(me, selvedge_replica::Config::new(), first, Count(0)) else {
        return false;
    };
    let mut driver = Driver::new(member);
    let propose = Input::Command(selvedge_replica::Command::Propose(7));
    let taken = driver.step(Time::ZERO, &mut Steps(0), propose, drop);
    taken.is_ok() && driver.machine().state() == Some(&Count(7))
}

/// Three nodes hold a map, and one of them stores an entry.
fn kgroup_works() -> bool {
    let nodes = (1..=3).map(|id| selvedge_groups::Node::new(id, Place([0; 3])));
    let selection = selvedge_groups::Selection::new().with_failures(1);
    let Ok(site) = Site::new(selection, nodes, [], 1) else {
        return false;
    };
    let site = Arc::new(site);
    let members: [Member; 3] = [1, 2, 3].map(|id| Member::new(id, 0));
    let mut drivers = Vec::new();
    let mut inputs = Vec::new();
    for me in members {
        let config = selvedge_kgroup::Config::new();
        let Ok(machine) = Kgroup::new(me, config, site.clone(), Start::Fresh) else {
            return false;
        };
        drivers.push(Driver::new(machine));
        let others = members.into_iter().filter(|it| *it != me);
        inputs.push((me.id, Input::Command(selvedge_kgroup::Command::SetEpoch(1))));
        inputs.extend(others.map(|it| (me.id, Input::Membership(Delta::Joined(it)))));
    }
    let operation = Operation::set("lamp", Expected::Absent, Some([7].into_iter().collect()));
    let change = selvedge_kgroup::Command::Map {
        map: GroupId::map("states", &Sha256Sortition),
        command: StoreCommand::Change {
            ticket: 1,
            operation,
        },
    };
    inputs.push((NodeId(2), Input::Command(change)));
    let mut is_stored = false;
    for second in 0..10 {
        let now = Time::ZERO + Span::secs(second);
        let mut effects = Vec::new();
        for driver in &mut drivers {
            let from = driver.machine().groups().me();
            driver.expire(now, &mut Steps(0), |it| effects.push((from, it)));
        }
        while !(inputs.is_empty() && effects.is_empty()) {
            for (to, input) in core::mem::take(&mut inputs) {
                let is_it = |it: &&mut Driver<Kgroup>| it.machine().groups().me().id == to;
                if let Some(driver) = drivers.iter_mut().find(is_it) {
                    let from = driver.machine().groups().me();
                    let take = |it| effects.push((from, it));
                    if driver.step(now, &mut Steps(0), input, take).is_err() {
                        return false;
                    }
                }
            }
            for (from, effect) in effects.drain(..) {
                match effect {
                    Effect::Send { to, message } => {
                        inputs.push((to.id, Input::Message { from, message }));
                    }
                    Effect::Event(selvedge_kgroup::Event::Map { event, .. }) => {
                        let version = 1;
                        let stored = Stored::Done { version };
                        is_stored |= event == StoreEvent::Changed { ticket: 1, stored };
                    }
                    Effect::Event(_) | Effect::Multicast { .. } => {}
                }
            }
        }
    }
    is_stored
}

/// A client asks a gateway, a follower runs the function, and the client is answered.
fn pcm_works() -> bool {
    use selvedge_pcm::client::{self, Client};
    use selvedge_pcm::follower::{self, Follower};
    use selvedge_pcm::gateway::{self, Gateway};
    use selvedge_pcm::{Answer, DutyCycle, Function, Limits, Returned};
    let [hub, sensor, app] = [1, 11, 21].map(|id| Member::new(id, 0));
    let first = Configuration::of([hub]);
    let always = follower::Config::new(DutyCycle::always());
    let (Ok(gateway), Ok(follower), Ok(client)) = (
        Gateway::new(hub, gateway::Config::new(), first, Limits::new()),
        Follower::new(sensor, always, [hub.id]),
        Client::new(app, client::Config::new(), [hub.id]),
    ) else {
        return false;
    };
    let mut gateway = Driver::new(gateway);
    let mut follower = Driver::new(follower);
    let mut client = Driver::new(client);
    let chance = &mut Steps(0);
    let mut wire = Vec::new();
    let (mut works, mut is_answered) = (true, false);
    let mut inputs = Vec::from([Input::Command(follower::Command::Start)]);
    let start = Input::Command(gateway::Command::Start);
    works &= gateway.step(Time::ZERO, chance, start, drop).is_ok();
    for second in 0..10 {
        let now = Time::ZERO + Span::secs(second);
        gateway.expire(now, chance, |it| sent(hub, it, &mut wire));
        follower.expire(now, chance, |it| sent(sensor, it, &mut wire));
        if second == 5 {
            let submit = Input::Command(client::Command::Submit(Function::new(b"7 * 7")));
            let taken = client.step(now, chance, submit, |it| sent(app, it, &mut wire));
            works &= taken.is_ok();
        }
        while !(wire.is_empty() && inputs.is_empty()) {
            for input in core::mem::take(&mut inputs) {
                let mut runs = Vec::new();
                let taken = follower.step(now, chance, input, |it| match it {
                    Effect::Event(follower::Event::Run { task, .. }) => runs.push(task),
                    it => sent(sensor, it, &mut wire),
                });
                works &= taken.is_ok();
                inputs.extend(runs.into_iter().map(|task| {
                    let returned = Returned::Value(b"49".iter().copied().collect());
                    Input::Command(follower::Command::Returned { task, returned })
                }));
            }
            for (from, to, message) in core::mem::take(&mut wire) {
                if to == hub.id {
                    let input = Input::Message { from, message };
                    let taken = gateway.step(now, chance, input, |it| sent(hub, it, &mut wire));
                    works &= taken.is_ok();
                } else if to == sensor.id {
                    inputs.push(Input::Message { from, message });
                } else {
                    let input = Input::Message { from, message };
                    let taken = client.step(now, chance, input, |it| {
                        let answered = client::Event::Answered {
                            number: 1,
                            answer: Answer::Value(b"49".iter().copied().collect()),
                            voters: core::iter::once(sensor.id).collect(),
                        };
                        is_answered |= it == Effect::Event(answered);
                    });
                    works &= taken.is_ok();
                }
            }
        }
    }
    works && is_answered
}

/// The messages sent by one of PCM's nodes.
fn sent<M: Machine<Message = selvedge_pcm::Message>>(
    from: Member,
    effect: Effect<M>,
    wire: &mut Vec<(Member, NodeId, selvedge_pcm::Message)>,
) {
    if let Effect::Send { to, message } = effect {
        wire.push((from, to.id, message));
    }
}

/// A node of a mesh asks a seed to be let in, in a frame that decodes.
fn node_works() -> bool {
    let me = Member::new(1, 1);
    let config = Config::radio();
    let budget = usize::from(config.frame_budget);
    let Ok(node) = Node::builder(me).membership(config).build() else {
        return false;
    };
    let seeds = [NodeId(2)].into();
    let join = selvedge::Command::Membership(Command::Join { seeds });
    let mut frames = Vec::new();
    let mut works = Driver::new(node)
        .step(Time::ZERO, &mut Steps(0), Input::Command(join), |effect| {
            if let Effect::Send { message, .. } = effect {
                let mut frame = Vec::new();
                let written = encode(me, &message, budget, &mut frame).is_ok();
                frames.push((written, message, frame));
            }
        })
        .is_ok();
    works &= !frames.is_empty();
    for (written, message, frame) in frames {
        let read = decode(message.kind(), &frame, budget);
        works &= written && read.is_ok_and(|it| it.from == me && it.message == message);
    }
    works
}

/// A node asks another node, and is inside when that node has sent OK.
fn camera_works() -> bool {
    let members = [Member::new(1, 1), Member::new(2, 1)];
    let config = selvedge_camera::Config::radio(2);
    let mut choices = Steps(0);
    let mut node = |me, other| {
        let mut driver = Driver::new(Camera::new(me, config).ok()?);
        let joined = Input::Membership(Delta::Joined(other));
        driver.step(Time::ZERO, &mut choices, joined, drop).ok()?;
        Some(driver)
    };
    let [one, two] = members;
    let (Some(mut asker), Some(mut friend)) = (node(one, two), node(two, one)) else {
        return false;
    };
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    let enter = Input::Command(selvedge_camera::Command::Enter);
    let mut works = asker
        .step_into(Time::ZERO, &mut Steps(0), enter, &mut asked)
        .is_ok();
    for effect in asked {
        if let Effect::Send { message, .. } = effect {
            let input = Input::Message { from: one, message };
            works &= friend
                .step_into(Time::ZERO, &mut Steps(0), input, &mut answered)
                .is_ok();
        }
    }
    for effect in answered {
        if let Effect::Send { message, .. } = effect {
            let input = Input::Message { from: two, message };
            works &= asker.step(Time::ZERO, &mut Steps(0), input, drop).is_ok();
        }
    }
    works && asker.machine().token().is_some()
}

/// A node opens a section and enters it, with the OK of a node that has not opened it.
fn sections_work() -> bool {
    let [one, two] = [Member::new(1, 1), Member::new(2, 1)];
    let config = sections::Config::radio(2);
    let node = |me, other| {
        let mut driver = Driver::new(Sections::new(me, config).ok()?);
        let joined = Input::Membership(Delta::Joined(other));
        driver.step(Time::ZERO, &mut Steps(0), joined, drop).ok()?;
        Some(driver)
    };
    let (Some(mut asker), Some(mut friend), Ok(name)) =
        (node(one, two), node(two, one), Name::new("door"))
    else {
        return false;
    };
    let open = sections::Command::Open { name, config: None };
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    let mut works = true;
    for command in [open, sections::Command::Enter(name)] {
        let taken = asker.step(Time::ZERO, &mut Steps(0), Input::Command(command), |it| {
            asked.push(it);
        });
        works &= taken.is_ok();
    }
    for effect in asked {
        if let Effect::Send { message, .. } = effect {
            let input = Input::Message { from: one, message };
            let taken = friend.step_into(Time::ZERO, &mut Steps(0), input, &mut answered);
            works &= taken.is_ok();
        }
    }
    for effect in answered {
        if let Effect::Send { message, .. } = effect {
            let input = Input::Message { from: two, message };
            works &= asker.step(Time::ZERO, &mut Steps(0), input, drop).is_ok();
        }
    }
    let inside = asker.machine().get(name).and_then(Camera::token);
    works && inside.is_some()
}

/// A trigger by hand submits its routine.
fn routine_works() -> bool {
    use selvedge_routine::trigger::{Command, Config, Dispatcher, Event};
    use selvedge_routine::{Routine, State, Step};
    let Ok(dispatcher) = Dispatcher::new(Config::default()) else {
        return false;
    };
    let (mut dispatcher, mut submitted) = (Driver::new(dispatcher), 0);
    let steps = Vec::from([Step::new(NodeId(1), State::from(7))]);
    let (name, routine) = ("r".into(), Routine { steps });
    let mut works = true;
    for command in [
        Command::AddRoutine { name, routine },
        Command::Run("r".into()),
    ] {
        let taken = dispatcher.step(Time::ZERO, &mut Steps(0), Input::Command(command), |it| {
            submitted += usize::from(matches!(it, Effect::Event(Event::Submit { .. })));
        });
        works &= taken.is_ok();
    }
    works && submitted == 1
}

/// The one device that a routine needs carries it out.
fn safehome_works() -> bool {
    use selvedge_safehome::{Command, Event, Hub, Outcome, Routine, Step};
    let Ok(hub) = Hub::new(selvedge_safehome::Config::default()) else {
        return false;
    };
    let (mut hub, device, mut notified) = (Driver::new(hub), NodeId(1), Vec::new());
    let steps = Vec::from([Step::new(device, 7_u8)]);
    let state = None;
    let mut works = true;
    for command in [
        Command::AddDevice { device, state },
        Command::Submit(Routine { steps }),
    ] {
        let input = Input::Command(command);
        let taken = hub.step_into(Time::ZERO, &mut Steps(0), input, &mut notified);
        works &= taken.is_ok();
    }
    for effect in notified {
        if let Effect::Event(Event::Issue { device, token, .. }) = effect {
            let outcome = Outcome::Done;
            let report = Command::Acted {
                device,
                token,
                outcome,
            };
            let input = Input::Command(report);
            works &= hub.step(Time::ZERO, &mut Steps(0), input, drop).is_ok();
        }
    }
    works && hub.machine().is_quiet() && hub.machine().state(device) == Some(&7)
}

/// A node asks another one for the nodes that it knows, and both follow the node that is appointed.
fn celect_works() -> bool {
    let members = [Member::new(1, 1), Member::new(2, 1)];
    let config = selvedge_celect::Config::new(0, 0);
    let node = |me, other| {
        let by_hash = Lowest::new(Sha256Sortition, b"hub");
        let mut driver = Driver::new(Celect::new(me, config, by_hash).ok()?);
        let joined = Input::Membership(Delta::Joined(other));
        driver.step(Time::ZERO, &mut Steps(0), joined, drop).ok()?;
        Some(driver)
    };
    let [one, two] = members;
    let (Some(mut first), Some(mut second)) = (node(one, two), node(two, one)) else {
        return false;
    };
    let mut wire = Vec::new();
    let elect = Input::Command(selvedge_celect::Command::Elect);
    let mut works = first
        .step(Time::ZERO, &mut Steps(0), elect, |it| wire.push((one, it)))
        .is_ok();
    while let Some((from, effect)) = wire.pop() {
        if let Effect::Send { to, message } = effect {
            let node = if to == one { &mut first } else { &mut second };
            let input = Input::Message { from, message };
            works &= node
                .step(Time::ZERO, &mut Steps(0), input, |it| wire.push((to, it)))
                .is_ok();
        }
    }
    let percent = |it| Ratio::new(it, 100);
    let size = selvedge_celect::estimate::sample_size(percent(10), percent(5), percent(90), None);
    works &= size == Some(98);
    let leader = first.machine().leader();
    works && leader.is_some() && leader == second.machine().leader()
}
