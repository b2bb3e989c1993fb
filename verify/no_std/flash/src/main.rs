//! A device with the protocols that the features name, for its size: it is built, and never run.
//!
//! It does a device's part in a protocol: it reads frames, steps the machine by messages, deltas,
//! commands and time, and writes frames. `budget` beside this crate's manifest sets the largest
//! size, and `measure` compares.

#![no_std]
#![no_main]

extern crate alloc;

#[path = "../../src/bare.rs"]
mod bare;

use core::hint::black_box;

use bare::Steps;
use selvedge_core::wire::Envelope;
use selvedge_core::{Delta, Driver, Effect, Input, Machine, Member, Time};
use serde::Serialize;

// Frames are decoded by postcard. A decoder of our own for the same encoding, which checks the length once
// and not after each field, takes 5 KB less, and is 600 lines that hostile input reaches.
use serde::de::DeserializeOwned;

#[cfg(not(target_os = "none"))]
#[link(name = "c")]
unsafe extern "C" {}

/// The entry point of a device.
#[cfg(target_os = "none")]
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    device();
    loop {}
}

/// The entry point for the C library's start code.
#[cfg(not(target_os = "none"))]
#[unsafe(no_mangle)]
extern "C" fn main(
    _count: core::ffi::c_int,
    _arguments: *const *const core::ffi::c_char,
) -> core::ffi::c_int {
    device();
    0
}

/// Every input is hidden from the compiler, so that it removes no handler.
fn device() {
    let me = black_box(Member::new(1, 1));
    #[cfg(feature = "membership")]
    {
        use selvedge_membership::{Command, Config, Membership};
        let machine = Membership::new(me, black_box(Config::radio())).ok();
        let commands = [
            Command::Join {
                seeds: [black_box(me).id].into(),
            },
            Command::Leave,
            Command::Broadcast([black_box(1)].into()),
            Command::Confirm(black_box(me)),
            Command::Inquire(black_box(me)),
        ];
        machine.map(|it| run(it, commands));
    }
    #[cfg(feature = "camera")]
    {
        use selvedge_camera::{Camera, Command, Config};
        let machine = Camera::new(me, black_box(Config::radio(2))).ok();
        let commands = [
            Command::Enter,
            Command::Exit,
            Command::Cancel,
            Command::GiveBack,
            Command::SetMaxLives(black_box(3)),
        ];
        machine.map(|it| run(it, commands));
    }
    #[cfg(feature = "celect")]
    {
        use selvedge_celect::{Celect, Command, Config, Lowest};
        use selvedge_core::SipSortition;
        let order = Lowest::new(SipSortition::new(black_box([7; 16])), b"gateway");
        let machine = Celect::new(me, black_box(Config::new(1, 0)), order).ok();
        let commands = [
            Command::Elect,
            Command::Measure,
            Command::SetBounds {
                missing_from: black_box(1),
                failures: 0,
            },
        ];
        machine.map(|it| run(it, commands));
    }
    #[cfg(feature = "pcm")]
    {
        use selvedge_core::NodeId;
        use selvedge_pcm::follower::{Command, Config, Follower};
        use selvedge_pcm::{DutyCycle, Library, Returned, TaskId};
        let config = black_box(Config::new(DutyCycle::always()));
        let machine = Follower::new(me, config, black_box([NodeId(2)])).ok();
        let task = TaskId {
            client: me,
            number: black_box(1),
        };
        let returned = Returned::Value([black_box(1)].into_iter().collect());
        let commands = [
            Command::Start,
            Command::Unreachable,
            Command::SetDutyCycle(black_box(DutyCycle::always())),
            Command::Returned { task, returned },
            Command::Loaded(black_box(Library(1))),
            Command::Missing(black_box(Library(1))),
        ];
        machine.map(|it| run(it, commands));
    }
}

/// Runs a protocol on a device, without end.
#[inline(never)]
fn run<M: Machine, const N: usize>(machine: M, commands: [M::Command; N])
where
    M::Message: Serialize + DeserializeOwned,
{
    let mut driver = Driver::new(machine);
    let mut commands = commands.into_iter();
    let mut radio = [0; 256];
    loop {
        let now = black_box(Time::ZERO);
        let chance = &mut Steps(black_box(0));
        let member = black_box(Member::new(2, 1));
        let input = match black_box(0) {
            0 => postcard::from_bytes(black_box(&radio))
                .ok()
                .map(|Envelope { from, message }| Input::Message { from, message }),
            1 => Some(Input::Membership(Delta::Joined(member))),
            2 => Some(Input::Membership(Delta::Suspected(member))),
            3 => Some(Input::Membership(Delta::Refuted(member))),
            4 => Some(Input::Membership(Delta::Failed(member))),
            5 => Some(Input::Membership(Delta::Left(member))),
            6 => Some(Input::Membership(Delta::Confirmed(member))),
            7 => commands.next().map(Input::Command),
            _ => None,
        };
        let mut carry_out = |effect| carry_out(effect, member, &mut radio);
        let is_refused = match input {
            Some(input) => driver.step(now, chance, input, &mut carry_out).is_err(),
            None => {
                driver.expire(now, chance, &mut carry_out);
                false
            }
        };
        black_box((is_refused, driver.deadline()));
    }
}

fn carry_out<M: Machine>(effect: Effect<M>, from: Member, radio: &mut [u8])
where
    M::Message: Serialize,
{
    match effect {
        Effect::Send { to, message } => {
            let written = postcard::to_slice(&Envelope { from, message }, radio);
            black_box((to, written.is_ok()));
        }
        other => {
            black_box(other);
        }
    }
}
