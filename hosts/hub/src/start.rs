//! Starts the devices of a home, each with its driver.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

use selvedge_core::{NodeId, Span};
use selvedge_hub::device::dummy::Dummy;
use selvedge_hub::device::esphome::Esphome;
use selvedge_hub::device::kasa::Kasa;
use selvedge_hub::device::mqtt::{Conventions, Ear, Unlinked};
use selvedge_hub::device::{Care, Device, Order, attend};
use selvedge_hub::event_loop::Request;
use selvedge_hub::event_loop::reports::reporter;
use selvedge_hub::file::{DriverShape, EsphomeShape, HomeFile};
use selvedge_hub::house::House;
use selvedge_hub::mqtt::{Post, PostError};
use selvedge_routine::State;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

/// The time for which a command of a device may still take effect after its outcome was reported as
/// unknown.
pub(crate) fn lateness(driver: &DriverShape) -> Span {
    match driver {
        DriverShape::Dummy(it) => Dummy::new(0.into(), it.takes()).lateness(),
        DriverShape::Kasa(it) => Kasa::new(it.address.to_string(), it.outlet).lateness(),
        DriverShape::Esphome(it) => esphome(it).lateness(),
        DriverShape::Mqtt(_) | DriverShape::Tasmota(_) | DriverShape::Zigbee2mqtt(_) => {
            Unlinked::lateness()
        }
    }
}

fn esphome(it: &EsphomeShape) -> Esphome {
    Esphome::new(it.address.to_string(), it.entity.clone(), it.key)
}

/// The devices of a home, while they are started.
pub(crate) struct Devices<'a> {
    house: &'a House,
    file: &'a HomeFile,
    to_controller: &'a Sender<Request>,
    pub(crate) orders: BTreeMap<NodeId, mpsc::UnboundedSender<Order>>,
    pub(crate) ears: Vec<Ear>,
    /// Devices that wait for the link to the broker.
    unlinked: Vec<(NodeId, Unlinked, mpsc::UnboundedReceiver<Order>)>,
}

impl<'a> Devices<'a> {
    pub(crate) const fn new(
        house: &'a House,
        file: &'a HomeFile,
        to_controller: &'a Sender<Request>,
    ) -> Self {
        Self {
            house,
            file,
            to_controller,
            orders: BTreeMap::new(),
            ears: Vec::new(),
            unlinked: Vec::new(),
        }
    }

    /// Starts the devices that need no broker.
    pub(crate) fn start_local(&mut self, runtime: &Runtime) -> Result<(), PostError> {
        for (id, name) in self.file.home.catalogue.iter() {
            let Some(driver) = self.file.drivers.get(name) else {
                continue;
            };
            let (to, from) = mpsc::unbounded_channel();
            self.orders.insert(id, to);
            match driver {
                DriverShape::Dummy(it) => {
                    let state = self.house.hub().state(id).cloned();
                    let state = state.unwrap_or_else(|| State::from("off"));
                    self.start(runtime, id, Dummy::new(state, it.takes()), from);
                }
                DriverShape::Kasa(it) => {
                    let plug = Kasa::new(it.address.to_string(), it.outlet);
                    self.start(runtime, id, plug, from);
                }
                DriverShape::Esphome(it) => self.start(runtime, id, esphome(it), from),
                DriverShape::Mqtt(it) => self.keep(id, it.conventions(name)?, from),
                DriverShape::Tasmota(it) => self.keep(id, it.conventions(name)?, from),
                DriverShape::Zigbee2mqtt(it) => self.keep(id, it.conventions(name)?, from),
            }
        }
        Ok(())
    }

    /// Keeps a device that is reached through the broker until there is a link.
    fn keep(&mut self, id: NodeId, how: Conventions, orders: mpsc::UnboundedReceiver<Order>) {
        let (device, ear) = Unlinked::new(how);
        self.ears.push(ear);
        self.unlinked.push((id, device, orders));
    }

    /// Starts the devices that are reached through the broker.
    pub(crate) fn start_remote(&mut self, runtime: &Runtime, post: &Post) {
        for (id, device, from) in core::mem::take(&mut self.unlinked) {
            self.start(runtime, id, device.link(post.link()), from);
        }
    }

    fn start<D: Device>(
        &self,
        runtime: &Runtime,
        id: NodeId,
        device: D,
        orders: mpsc::UnboundedReceiver<Order>,
    ) {
        let notify = reporter(id, self.to_controller.clone());
        runtime.spawn(attend(device, Care::default(), orders, notify));
    }
}
