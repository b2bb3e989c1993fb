//! Settings at the ends of their ranges, and beyond.

use selvedge_core::Span;
use selvedge_core::settings::OutOfRange;
use selvedge_pcm::{DutyCycle, Limits, client, follower, gateway};

/// Checks that values within the range of this setting are accepted, and others refused with its name.
fn range<C: core::fmt::Debug>(
    name: &str,
    check: impl Fn(&C) -> Result<(), OutOfRange>,
    within: impl IntoIterator<Item = C>,
    beyond: impl IntoIterator<Item = C>,
) {
    for it in within {
        assert_eq!(check(&it), Ok(()), "{name} of {it:?}");
    }
    for it in beyond {
        let refused = check(&it).expect_err(name);
        assert_eq!(refused.0.name, name, "{it:?}");
    }
}

#[test]
fn limits_work_within_their_ranges_alone() {
    let all = Limits::new();
    let range = |name, within: &[Limits], beyond: &[Limits]| {
        range(name, Limits::check, within.to_vec(), beyond.to_vec());
    };
    range(
        "followers",
        &[all.with_followers(1), all.with_followers(u32::MAX)],
        &[all.with_followers(0)],
    );
    range(
        "unit",
        &[all.with_unit(3), all.with_unit(15)],
        &[all.with_unit(2), all.with_unit(16)],
    );
    range(
        "margin",
        &[all.with_margin(0), all.with_margin(1_000_000)],
        &[all.with_margin(1_000_001)],
    );
    range("gateways", &[all.with_gateways(1)], &[all.with_gateways(0)]);
    range("open", &[all.with_open(1)], &[all.with_open(0)]);
    range("done", &[all.with_done(1)], &[all.with_done(0)]);
    range("clients", &[all.with_clients(1)], &[all.with_clients(0)]);
    range("attempts", &[all.with_attempts(1)], &[all.with_attempts(0)]);
    range("result", &[all.with_result(1)], &[all.with_result(0)]);
    // A table may remember nothing of former followers, and no results and libraries.
    let least = all.with_tombstones(0).with_cache(0).with_libraries(0);
    assert_eq!(least.check(), Ok(()));
}

#[test]
fn clients_work_within_their_settings_ranges_alone() {
    let all = client::Config::new();
    let range = |name, within, beyond| range(name, client::Config::check, [within], [beyond]);
    range(
        "resend",
        all.with_resend(Span(1)),
        all.with_resend(Span::ZERO),
    );
    range("repeats", all.with_repeats(1), all.with_repeats(0));
    range("tasks", all.with_tasks(1), all.with_tasks(0));
    let none = client::Client::new(selvedge_core::Member::new(1, 0), all.with_tasks(0), []);
    assert!(matches!(none, Err(client::Reject::Config(_))), "{none:?}");
}

#[test]
fn followers_work_within_their_settings_ranges_alone() {
    let all = follower::Config::new(DutyCycle::always());
    let range = |name, within: &[follower::Config], beyond: &[follower::Config]| {
        range(
            name,
            follower::Config::check,
            within.to_vec(),
            beyond.to_vec(),
        );
    };
    let never = DutyCycle {
        active_ms: 0,
        ..DutyCycle::always()
    };
    range(
        "active, busy and asleep together",
        &[],
        &[all.with_duty(never)],
    );
    range("jobs", &[all.with_jobs(1)], &[all.with_jobs(0)]);
    range("code", &[all.with_code(1)], &[all.with_code(0)]);
    range("result", &[all.with_result(1)], &[all.with_result(0)]);
    range(
        "time",
        &[all.with_time(Span(1))],
        &[all.with_time(Span::ZERO)],
    );
    range(
        "libraries",
        &[all.with_libraries(0), all.with_libraries(16)],
        &[all.with_libraries(17)],
    );
    range("repeats", &[all.with_repeats(1)], &[all.with_repeats(0)]);
}

#[test]
fn gateways_work_within_their_settings_ranges_alone() {
    let all = gateway::Config::new();
    let range = |name, within, beyond| range(name, gateway::Config::check, [within], [beyond]);
    let beat = Span::millis(700);
    range(
        "timeout",
        all.with_heartbeat(beat).with_timeout(Span(1_400_001)),
        all.with_heartbeat(beat).with_timeout(Span(1_400_000)),
    );
    range(
        "purge_after",
        all.with_purge_after(11),
        all.with_purge_after(10),
    );
    range(
        "offload_after",
        all.with_offload_after(10),
        all.with_offload_after(9),
    );
    range(
        "function_time",
        all.with_function_time(Span(1)),
        all.with_function_time(Span::ZERO),
    );
    range(
        "settle",
        all.with_settle(Span(1)),
        all.with_settle(Span::ZERO),
    );
    range(
        "review",
        all.with_review(Span(1)),
        all.with_review(Span::ZERO),
    );
    range("clients", all.with_clients(1), all.with_clients(0));
    let replica = all.replica.with_state_limit(0);
    let refused = all.with_replica(replica).check().unwrap_err();
    assert_eq!(Err(refused), replica.check(), "that of the replica");
}

/// The memory of a host that suffices in one release suffices in the next.
#[test]
fn the_bound_of_the_tables_stays_as_it_is() {
    let all = Limits::new()
        .with_followers(101)
        .with_libraries(3)
        .with_unit(7)
        .with_gateways(11)
        .with_tombstones(53)
        .with_open(29)
        .with_done(37)
        .with_cache(23)
        .with_clients(19)
        .with_result(101);
    let size = |limits: Limits| limits.largest_state(1_009);
    let one_more = [
        all.with_followers(102),
        all.with_libraries(4),
        all.with_unit(8),
        all.with_gateways(12),
        all.with_tombstones(54),
        all.with_open(30),
        all.with_done(38),
        all.with_cache(24),
        all.with_clients(20),
        all.with_result(102),
    ];
    let bytes = one_more.map(|it| size(it) - size(all));
    assert_eq!(
        bytes,
        [162, 1_560, 6_170, 483, 125, 2_734, 256, 260, 70, 332]
    );
    assert_eq!(size(all), 126_227);
    assert_eq!(all.largest_state(1_010) - size(all), 30, "one more of each");
}
