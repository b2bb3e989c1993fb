//! P6: how long it takes to form units of very many followers.

use std::sync::Arc;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::{Choose, Member, NodeId};
use selvedge_pcm::{Attachment, DutyCycle, Libraries, Limits, Tables, Update};
use selvedge_replica::State;
use selvedge_udp::Clock;

use crate::claims::{Claim, Experiment, Fault, Judgement, Sample, Samples, Verdict};

const NAME: &str = "pcm: units of up to 250,000 followers, timed";
const FOLLOWERS: [u64; 4] = [1_000, 10_000, 50_000, 250_000];
/// Between two times that units are formed, one follower in this many is replaced.
const CHANGED: u64 = 100;
/// A time is given as the smallest of these that it stays within, in ms, so that runs on one machine have
/// one result.
const STEPS: [u64; 4] = [3, 30, 300, 3_000];
/// Well below the second for which followers come and go before units are formed,
/// [`Config::settle`](selvedge_pcm::gateway::Config::settle).
const CHEAP: u64 = 300;

pub(super) fn claim() -> Claim {
    Claim {
        id: "P6",
        claim: "forming units and naming orchestrators of 1,000, 10,000, 50,000 and 250,000 followers takes",
        source: "PCM, section 5d, figure 10",
        unit: "",
        experiments: vec![Experiment {
            name: NAME.to_owned(),
            trials: 1,
            run: Arc::new(timed),
        }],
        judge,
    }
}

/// For each number of followers: the step within which units are formed for the first time, and when one
/// follower in a hundred is another one.
fn timed(seed: u64) -> Result<Sample, Fault> {
    let mut seen = Vec::new();
    for followers in FOLLOWERS {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let limits = Limits::new().with_followers(followers as u32);
        let mut tables = Tables::new(limits);
        for id in 1..=followers {
            tables.apply(&Update::Attach(attachment(id, &mut rng)));
        }
        seen.push(form(&mut tables)?);
        for id in (1..=followers).step_by(CHANGED as usize) {
            if let Some(known) = tables.follower(NodeId(id)).cloned() {
                tables.apply(&Update::Purge(known));
            }
            let another = attachment(followers + id, &mut rng);
            tables.apply(&Update::Attach(another));
        }
        seen.push(form(&mut tables)?);
    }
    Ok(Sample(seen))
}

/// A follower of some availability, at one of 16 gateways.
fn attachment(id: u64, rng: &mut ChaCha8Rng) -> Attachment {
    Attachment {
        member: Member::new(id, 0),
        number: 1,
        gateway: NodeId(rng.below(16)),
        duty: DutyCycle {
            active_ms: 100 + rng.below(10_000) as u32,
            busy_ms: 0,
            asleep_ms: 10_000,
        },
        libraries: Libraries::new(),
    }
}

/// Forms units, and returns the step within which that was.
fn form(tables: &mut Tables) -> Result<Option<u64>, Fault> {
    let after = tables.clustered();
    let clock = Clock::start();
    tables.apply(&Update::Cluster { after });
    let took = clock.now().0.div_ceil(1_000);
    let followers = tables.followers().count();
    let size = usize::from(tables.limits().unit);
    let seated: usize = (0..tables.units())
        .map(|unit| tables.members(unit as u32).count())
        .sum();
    if tables.units() != followers.div_ceil(size) || seated != followers {
        let why = format!("{} units of {followers} followers", tables.units());
        return Err(Fault::Outcome(why));
    }
    Ok(STEPS.iter().find(|&&step| took <= step).copied())
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let (_, sample) = samples.of(NAME).next()?;
    let steps = |from: usize| {
        let all = sample.0.iter().skip(from).step_by(2);
        let all = all.map(|it| match it {
            Some(step) => step.to_string(),
            None => format!("above {}", STEPS.last().copied().unwrap_or_default()),
        });
        let all: Vec<String> = all.collect();
        format!("within {} ms", all.join(" / "))
    };
    let last = sample.0.iter().rev().take(2);
    let is_cheap = last.copied().all(|it| it.is_some_and(|step| step <= CHEAP));
    Some(Judgement {
        paper: "no high overhead up to 250,000".to_owned(),
        ours: steps(0),
        verdict: if is_cheap {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "One thread; the step of {STEPS:?} ms that each stayed within. Formed again, when one follower in {CHANGED} is \
             another one: {}. Each gateway forms the units alike from one update; the paper's resource manager, a \
             Raspberry Pi 3 B, forms them and sends them. Followers are of many shares of time. Figure 10 lost its \
             axis; the text says that 250,000 are no high overhead. Holds when 250,000 take no more than {CHEAP} ms, well \
             below the second for which followers come and go before units are formed (Config::settle).",
            steps(1),
        ),
        trials: 1,
        plots: Vec::new(),
    })
}
