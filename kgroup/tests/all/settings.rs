//! Settings of the leaders of devices.

use selvedge_core::Span;
use selvedge_core::settings::OutOfRange;
use selvedge_kgroup::devices::{Config, ConfigError, Limits};

#[test]
fn settings_that_cannot_work_are_named() {
    assert_eq!(Config::new().check(), Ok(()));
    assert_eq!(Limits::new().check(), Ok(()));
    let short = Config::new().with_ping(Span::millis(200));
    let ping_timeout = Span::millis(200);
    let ping = ping_timeout;
    assert_eq!(short.check(), Err(ConfigError::Ping { ping, ping_timeout }));
    assert_eq!(short.with_ping(Span::millis(201)).check(), Ok(()));
    let named = |config: Config| match config.check() {
        Err(ConfigError::Range(OutOfRange(setting))) => setting.name,
        other => panic!("{other:?}"),
    };
    let new = Config::new();
    assert_eq!(named(new.with_ping_timeout(Span::ZERO)), "ping_timeout");
    assert_eq!(named(new.with_misses(0)), "misses");
    assert_eq!(named(new.with_resend(Span::ZERO)), "resend");
    let short = new.with_resend_most(Span::millis(499));
    assert_eq!(named(short), "resend_most");
    assert_eq!(named(new.with_act_timeout(Span::ZERO)), "act_timeout");
    let limit = |limits: Limits| limits.check().unwrap_err().0.name;
    assert_eq!(limit(Limits::new().with_routines(0)), "routines");
    assert_eq!(limit(Limits::new().with_word(0)), "word");
    assert!(Limits::new().with_queue(0).with_watchers(0).check().is_ok());
}
