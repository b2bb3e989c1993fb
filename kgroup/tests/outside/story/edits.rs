//! Sites and their edits.

use selvedge_core::{NodeId, Span};
use selvedge_groups::{Node, Place, Selection, Weight};
use selvedge_kgroup::routines::{Definition, Locking, Retrigger};
use selvedge_kgroup::{Delivery, Site};
use selvedge_routine::{Clause, Comparison, Condition, Priority, Routine, State, Step};

use super::Story;

impl Story {
    pub(super) fn first_site(&mut self) -> Option<Site> {
        let setting = self.setting.clone();
        let selection = Selection::new().with_failures(setting.failures);
        let nodes = (1..=setting.nodes).map(|id| match setting.has_places {
            true => Node::new(id, place(id)),
            false => Node::without_place(NodeId(id)),
        });
        let nodes: Vec<Node> = nodes.collect();
        let devices = (0..setting.devices).map(|it| (NodeId(100 + it), place(it * 2)));
        for device in 0..setting.devices {
            self.world
                .device_states
                .insert(NodeId(100 + device), "0".into());
        }
        let mut site = Site::new(selection, nodes, devices, setting.cluster).ok()?;
        if let Some(limits) = setting.limits {
            site = site.with_limits(limits);
        }
        for _ in 0..setting.routines {
            let devices: Vec<NodeId> = (0..setting.devices).map(|it| NodeId(100 + it)).collect();
            let routine = self.routine(&devices);
            site = site.with_routine(routine).ok()?;
        }
        for budget in [setting.budget, 200, 260, 400, 1_400] {
            if budget < setting.budget {
                continue;
            }
            if let Ok(site) = site.clone().with_frame_budget(budget) {
                return Some(site);
            }
        }
        None
    }

    fn routine(&mut self, devices: &[NodeId]) -> Definition {
        let word = self.unique();
        let sensor = self.sensor;
        let mut usable: Vec<NodeId> = devices.iter().copied().filter(|it| *it != sensor).collect();
        let dice = self.dice();
        let count = dice.range(1, 3);
        let mut steps = Vec::new();
        let mut deliveries = Vec::new();
        for index in 0..count {
            let Some(device) = dice.pick(&usable) else {
                break;
            };
            if dice.percent(70) && usable.len() > 1 {
                usable.retain(|it| *it != device);
            }
            let mut step = Step::new(device, State::from(format!("w{word}.{index}").as_str()));
            if dice.percent(60) {
                step.priority = Priority::BestEffort;
            }
            if dice.percent(20) {
                step.timeout = Some(Span::millis(dice.range(200, 3_000)));
            }
            if dice.percent(15) {
                step.hold = Span::millis(dice.range(1, 2_000));
            }
            let delivery = if dice.percent(50) {
                Delivery::AtMostOnce
            } else {
                Delivery::AtLeastOnce
            };
            deliveries.push(delivery);
            steps.push(step);
        }
        let is_clause = dice.percent(25) && devices.contains(&sensor);
        let locking = match dice.percent(75) {
            true => Locking::Sequential,
            false => Locking::Optimistic,
        };
        let retrigger = dice.pick(&[Retrigger::Ignore, Retrigger::QueueOnce, Retrigger::Restart]);
        let mut definition = Definition::new(Routine { steps })
            .with_deliveries(deliveries)
            .with_locking(locking)
            .with_retrigger(retrigger.unwrap())
            .with_command_timeout(Span::millis(dice.range(500, 4_000)));
        if is_clause {
            let comparison = Comparison::Equal;
            let condition = Condition {
                device: sensor,
                comparison,
                value: State::from("open"),
            };
            definition = definition.with_clause(Clause::Is(condition));
        }
        definition
    }

    /// Another site, some edits away from this one.
    pub(super) fn edit(&mut self, mut site: Site) -> Site {
        let unique = self.unique();
        let mark = site.clone().with_device(self.sensor, place(unique));
        site = mark.unwrap_or(site);
        let edits = self.dice().range(1, 3);
        for _ in 0..edits {
            if let Some(next) = self.edit_once(&site) {
                site = next;
            }
        }
        site
    }

    fn edit_once(&mut self, site: &Site) -> Option<Site> {
        let unique = self.unique();
        let devices: Vec<NodeId> = site
            .clusters()
            .flat_map(|it| site.devices(Site::cluster(it.0)))
            .map(|it| it.0)
            .collect();
        let routines: Vec<u32> = site.routines().map(|it| it.0).collect();
        let nodes: Vec<NodeId> = site.nodes().iter().map(|it| it.id).collect();
        let least = 2 * usize::from(self.setting.failures) + 1;
        let site = site.clone();
        match self.dice().below(12) {
            0 => {
                let device = NodeId(self.dice().range(101, 107));
                self.world
                    .device_states
                    .entry(device)
                    .or_insert_with(|| "0".into());
                site.with_device(device, place(unique)).ok()
            }
            1 => {
                let device = self.dice().pick(&devices)?;
                site.with_device(device, place(unique)).ok()
            }
            2 | 3 => {
                let device = self.dice().pick(&devices).filter(|it| *it != self.sensor)?;
                let rest: Vec<NodeId> =
                    devices.iter().copied().filter(|it| *it != device).collect();
                if rest.iter().all(|it| *it == self.sensor) {
                    return None;
                }
                let mut site = site;
                for number in routines {
                    let definition = site.definition(Site::routine(number))?;
                    if !definition.devices().contains(&device) {
                        continue;
                    }
                    site = match self.dice().percent(50) {
                        true => site.without_routine(number).ok()?,
                        false => {
                            let routine = self.routine(&rest);
                            site.with_routine_changed(number, routine).ok()?
                        }
                    };
                }
                site.without_device(device).ok()
            }
            4 | 5 => {
                let routine = self.routine(&devices);
                site.with_routine(routine).ok()
            }
            6 | 7 => {
                let number = self.dice().pick(&routines)?;
                let routine = self.routine(&devices);
                site.with_routine_changed(number, routine).ok()
            }
            8 => {
                let number = self.dice().pick(&routines)?;
                site.without_routine(number).ok()
            }
            9 => {
                let id = self.dice().range(1, 10);
                let node = match self.setting.has_places {
                    true => Node::new(id, place(unique)),
                    false => Node::without_place(NodeId(id)),
                };
                site.with_node(node).ok()
            }
            10 => {
                let id = self.dice().pick(&nodes)?;
                let weight = Weight(self.dice().pick(&[0, 1, 4, 16, 40])?);
                let node = match self.setting.has_places {
                    true => Node::new(id.0, place(unique)),
                    false => Node::without_place(id),
                };
                site.with_node(node.with_weight(weight)).ok()
            }
            _ => {
                let id = self.dice().pick(&nodes)?;
                if nodes.len() <= least + usize::from(self.dice().percent(50)) {
                    return None;
                }
                site.without_node(id).ok()
            }
        }
    }
}

pub(super) fn place(number: u64) -> Place {
    Place([
        (number % 7 * 300) as i32,
        (number % 5 * 200) as i32,
        (number / 3) as i32,
    ])
}

/// The parts of a site in one line.
pub(crate) fn outline(site: &Site) -> String {
    let nodes: Vec<u64> = site.nodes().iter().map(|it| it.id.0).collect();
    let clusters: Vec<(u32, Vec<u64>)> = site
        .clusters()
        .map(|it| {
            (
                it.0,
                site.devices(Site::cluster(it.0))
                    .iter()
                    .map(|it| it.0.0)
                    .collect(),
            )
        })
        .collect();
    let routines: Vec<(u32, String, Vec<u64>)> = site
        .routines()
        .map(|it| {
            let word = crate::oracle::word_of(it.1);
            (it.0, word, it.1.devices().iter().map(|it| it.0).collect())
        })
        .collect();
    format!(
        "{}: nodes {nodes:?}, {clusters:?}, {routines:?}",
        site.generation()
    )
}
