//! Other settings than those under which a state was stored.

use selvedge_safehome::{Command, Config, Damage, Hub, Outcome, RoutineId, Scheduler, Visibility};

use crate::save::host::{A, B, Host, issues};

#[test]
fn settings_that_do_not_fit_are_refused() {
    let mut host = Host::new(Config::default());
    host.submit(&[(A, 1), (B, 2)]);
    let saved = host.hub.machine().save();
    let restore = |config| Hub::restore(config, saved.clone()).map(|_| ());
    let config = Config::default();
    assert_eq!(restore(config), Ok(()));
    let least = config.with_device_limit(2).with_step_limit(2);
    assert_eq!(restore(least), Ok(()));
    let visibility = Visibility::Weak;
    assert_eq!(
        restore(config.with_visibility(visibility)),
        Err(Damage::Visibility {
            saved: Visibility::Eventual,
            asked: Visibility::Weak
        })
    );
    let device_limit = 1;
    assert_eq!(
        restore(config.with_device_limit(device_limit)),
        Err(Damage::TooManyDevices { found: 2, limit: 1 })
    );
    let step_limit = 1;
    assert_eq!(
        restore(config.with_step_limit(step_limit)),
        Err(Damage::TooLong {
            routine: RoutineId(1),
            found: 2,
            limit: 1
        })
    );
    let mut bytes = postcard::to_allocvec(&saved).unwrap();
    bytes[0] = 9;
    assert_eq!(
        Hub::<u8>::restore(config, postcard::from_bytes(&bytes).unwrap()).err(),
        Some(Damage::Version { found: 9 })
    );
}

/// Routines that waited under `JustInTime` get their places in the order of their submission, and
/// new ones come later.
#[test]
fn who_waited_just_in_time_is_not_overtaken_under_another_scheduler() {
    for scheduler in [Scheduler::FirstCome, Scheduler::Timeline] {
        let config = |scheduler| Config::default().with_scheduler(scheduler);
        let mut host = Host::new(config(Scheduler::JustInTime));
        let events = host.submit(&[(A, 1)]);
        let token = issues(&events)[0].2;
        host.submit(&[(B, 2), (A, 2)]);
        host.submit(&[(B, 3), (A, 3)]);
        let hub = Hub::restore(config(scheduler), host.hub.machine().save()).unwrap();
        let mut host = Host::of(hub);
        let mut issued = vec![(A, 1, token)];
        issued.extend(issues(&host.notify(Command::Resume).unwrap()));
        issued.extend(issues(&host.submit(&[(A, 4), (B, 4)])));
        let mut states = [0; 2];
        while let Some((device, state, token)) = issued.pop() {
            states[device.0 as usize] = state;
            let done = Command::Acted {
                device,
                token,
                outcome: Outcome::Done,
            };
            issued.extend(issues(&host.notify(done).unwrap()));
        }
        assert!(host.hub.machine().is_quiet());
        assert_eq!(states, [4, 4], "{scheduler:?}");
    }
}

/// A weak hub restores nothing, so the changes that it leaves behind give another model nothing to
/// restore.
#[test]
fn a_change_by_hand_at_a_weak_hub_is_not_brought_back_under_another_model() {
    let config = |visibility| Config::default().with_visibility(visibility);
    let mut host = Host::new(config(Visibility::Weak));
    let mut issued = issues(&host.submit(&[(A, 1), (B, 1)]));
    issued.extend(issues(&host.submit(&[(A, 7)])));
    // It overtakes a command that is refused.
    let (device, state) = (A, 5);
    host.notify(Command::Observed { device, state }).unwrap();
    let mut outcome = Outcome::Refused;
    while let Some((device, _, token)) = issued.pop() {
        let notified = Command::Acted {
            device,
            token,
            outcome,
        };
        issued.extend(issues(&host.notify(notified).unwrap()));
        outcome = Outcome::Done;
    }
    let hub = host.hub.machine();
    assert!(hub.is_quiet());
    assert_eq!(hub.state(A), Some(&7));
    let hub = Hub::restore(config(Visibility::Eventual), hub.save()).unwrap();
    assert_eq!(issues(&Host::of(hub).notify(Command::Resume).unwrap()), []);
}
