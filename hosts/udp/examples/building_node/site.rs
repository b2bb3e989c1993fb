//! The site: the building as it begins, and its lights, each with a routine of its own.

use selvedge_routine::trigger::Trigger;
use selvedge_routine::{Priority, Routine, Step};
use selvedge_udp::selvedge::groups::{Node, Place, Selection, Weight};
use selvedge_udp::selvedge::kgroup::routines::{Definition, Retrigger};
use selvedge_udp::selvedge::kgroup::{ConfigError, Delivery, Site};
use selvedge_udp::{NodeId, Span};

pub(crate) const LAMP: NodeId = NodeId(101);
pub(crate) const BELL: NodeId = NodeId(102);
pub(crate) const CHIME: NodeId = NodeId(103);

pub(crate) const DOORBELL: u32 = 0;
/// The routine that sounds the chime.
pub(crate) const TIMER: u32 = 1;
/// The time from one chime to the next.
const INTERVAL: Span = Span::secs(2);
/// A chime that is later than this is left out.
const LATENESS: Span = Span::secs(1);

/// The longest time for which a light sleeps.
const WAKE_INTERVAL: Span = Span::secs(600);

/// The building as it begins, which is equal on all nodes: these nodes, three devices, the doorbell and the
/// timer. Each map, device and routine is at 2 * `failures` + 1 of the nodes.
pub(crate) fn first(nodes: u64, failures: u8, batteries: &[u64]) -> Result<Site, ConfigError> {
    let here = Place::default();
    let nodes = (1..=nodes).map(|id| match batteries.contains(&id) {
        true => Node::new(id, here).with_weight(Weight(4)),
        false => Node::new(id, here),
    });
    let site = Site::new(
        Selection::new().with_failures(failures),
        nodes,
        [(LAMP, here), (BELL, here), (CHIME, here)],
        1,
    )?;
    let mut ring = Step::new(BELL, "rings".into());
    ring.priority = Priority::BestEffort;
    let steps = vec![Step::new(LAMP, "on".into()), ring];
    let doorbell = Definition::new(Routine { steps })
        .with_deliveries([Delivery::AtLeastOnce, Delivery::AtMostOnce])
        // After a power cut the devices wait for the nodes that return.
        .with_command_timeout(Span::secs(60))
        .with_retrigger(Retrigger::QueueOnce);
    let timer = switching(CHIME, "sounds")
        .with_trigger(Trigger::Every(INTERVAL))
        .with_lateness(LATENESS);
    site.with_routine(doorbell)?.with_routine(timer)
}

/// A routine of one command.
fn switching(device: NodeId, value: &str) -> Definition {
    let steps = vec![Step::new(device, value.into())];
    Definition::new(Routine { steps }).with_retrigger(Retrigger::QueueOnce)
}

/// The site with one more light, and a routine that switches it on.
pub(crate) fn with_light(site: Site, light: NodeId) -> Result<Site, ConfigError> {
    site.with_device(light, Place::default())?
        .with_routine(switching(light, "on"))
}

/// The site after an edit of a light or a node; the same site if it is so already.
pub(crate) fn edited(
    site: Site,
    edit: &str,
    id: NodeId,
    rest: &[&str],
) -> Result<Site, ConfigError> {
    let has_light = site.cluster_of(id).is_some();
    let has_node = site.nodes().iter().any(|it| it.id == id);
    match (edit, rest) {
        ("add", []) if !has_light => with_light(site, id),
        ("add", ["asleep"]) if !has_light => {
            with_light(site, id)?.with_wake_interval(id, Some(WAKE_INTERVAL))
        }
        ("remove", []) if has_light => without_light(site, id),
        ("set", [value]) => match routine_of(&site, id) {
            Some(routine) => site.with_routine_changed(routine, switching(id, value)),
            None => Ok(site),
        },
        ("move", [metres]) if has_light => {
            let metres: i32 = metres.parse().unwrap_or_default();
            site.with_device(id, Place([metres.saturating_mul(100), 0, 0]))
        }
        ("node+", []) if !has_node => site.with_node(Node::new(id.0, Place::default())),
        ("node-", []) if has_node => site.without_node(id),
        _ => Ok(site),
    }
}

/// The site without a light and its routine. Other routines that need the light are in the way.
fn without_light(site: Site, light: NodeId) -> Result<Site, ConfigError> {
    let site = match routine_of(&site, light) {
        Some(routine) => site.without_routine(routine)?,
        None => site,
    };
    site.without_device(light)
}

/// The number of a light's routine.
pub(crate) fn routine_of(site: &Site, light: NodeId) -> Option<u32> {
    let mut routines = site.routines().filter(|it| it.0 != TIMER);
    routines.find(|it| it.1.devices() == [light]).map(|it| it.0)
}

/// The generation, the nodes, and each light with its place and the value to which its routine sets it.
pub(crate) fn shown(site: Option<&Site>) -> String {
    let Some(site) = site else {
        return "the site is not known yet".to_owned();
    };
    let nodes: Vec<u64> = site.nodes().iter().map(|it| it.id.0).collect();
    let lights = site.clusters().filter_map(|(number, it)| {
        let [light] = it.devices[..] else { return None };
        let routine = routine_of(site, light)?;
        let step = site
            .definition(Site::routine(routine))?
            .routine
            .steps
            .first()?;
        let at = site.devices(Site::cluster(number)).first()?.1.0[0] / 100;
        let asleep = match site.wake_interval(light) {
            Some(_) => ", asleep",
            None => "",
        };
        Some((light, format!("{light}: {} at {at} m{asleep}", step.value)))
    });
    let mut lights: Vec<_> = lights.collect();
    lights.sort_unstable();
    let lights: Vec<String> = lights.into_iter().map(|it| it.1).collect();
    let (generation, lights) = (site.generation(), lights.join("; "));
    format!("generation {generation}, nodes {nodes:?}, lights {lights}")
}
