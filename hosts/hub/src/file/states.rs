//! Checks that devices can be in the states that a file names.

use selvedge_routine::State;
use selvedge_routine::file::Mention;
use thiserror::Error;

use super::{DriverShape, HomeFile};
use crate::device::relay;

/// A state that the file names, and that its device is never in.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StateError {
    /// A state other than on and off, of a device that has no others.
    #[error(
        "{at}: {device:?} is a plug, and {state} is no state of it: write on or off, at line {line} column {column}",
        state = written(state)
    )]
    NotForPlug {
        /// The place, as in `routines[2].CommandList[1]`.
        at: String,
        /// The device.
        device: String,
        /// The state.
        state: State,
        /// The line, from 1.
        line: usize,
        /// The column, in characters from 1.
        column: usize,
    },
    /// The device's report of this state is read as another state, or as none. So no command to be in it
    /// would be proven, and no clause that asks for it would hold.
    #[error(
        "{at}: {device:?} is never in the state {state}: its report of it is read as {read}: {mend}, at line {line} \
         column {column}",
        state = written(state),
        read = read.as_ref().map_or("none".into(), written),
        mend = mend(read.as_ref())
    )]
    ReadAsOther {
        /// The place, as in `routines[2].CommandList[1]`.
        at: String,
        /// The device.
        device: String,
        /// The state.
        state: State,
        /// The state that is read instead, if any.
        read: Option<State>,
        /// The line, from 1.
        line: usize,
        /// The column, in characters from 1.
        column: usize,
    },
}

/// The state as a file has it.
fn written(state: &State) -> String {
    match state {
        State::Number(number) => number.to_string(),
        State::Word(word) => format!("{word:?}"),
    }
}

fn mend(read: Option<&State>) -> String {
    match read {
        Some(read) => format!("write {}", written(read)),
        None => "choose another state, or give it a word in \"words\"".into(),
    }
}

/// Checks that the device can be in the state that is named.
pub(super) fn check(file: &HomeFile, mention: Mention) -> Result<(), StateError> {
    let Mention {
        device,
        state,
        path: at,
        line,
        column,
    } = mention;
    let device: String = file.home.catalogue.name(device).unwrap_or_default().into();
    match file.drivers.get(&device) {
        Some(DriverShape::Kasa(_) | DriverShape::Esphome(_) | DriverShape::Tasmota(_)) => {
            match relay(&state) {
                Some(_) => Ok(()),
                None => Err(StateError::NotForPlug {
                    at,
                    device,
                    state,
                    line,
                    column,
                }),
            }
        }
        Some(driver @ (DriverShape::Mqtt(_) | DriverShape::Zigbee2mqtt(_))) => {
            let Some(Ok(how)) = driver.conventions(&device) else {
                return Ok(()); // That is another error, which was found before.
            };
            let read = how.read_back(&state);
            match read.as_ref() == Some(&state) {
                true => Ok(()),
                false => Err(StateError::ReadAsOther {
                    at,
                    device,
                    state,
                    read,
                    line,
                    column,
                }),
            }
        }
        Some(DriverShape::Dummy(_)) | None => Ok(()),
    }
}
