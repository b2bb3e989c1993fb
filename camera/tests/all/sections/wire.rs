//! The wire format: exact bytes, predicted lengths, invalid names, and frames within their budget.

use selvedge_camera::sections::{KIND, Message};
use selvedge_camera::{Request, Token};
use selvedge_core::wire::{Envelope, VERSION};

use super::*;
use crate::frames;

fn samples() -> Vec<Message> {
    let request = Request {
        number: 300,
        up_to: 364,
        last: 0,
    };
    let (section, after) = (name("d"), None);
    let token = Token {
        number: 2,
        by: Member::new(9, 0),
    };
    vec![
        Message {
            section,
            message: selvedge_camera::Message::Request { request, after },
        },
        Message {
            section: name("0123456789abcdef"),
            message: selvedge_camera::Message::Floor { token },
        },
        Message {
            section: name("über"),
            message: selvedge_camera::Message::Wait { number: 7 },
        },
    ]
}

#[test]
fn the_format_stays_as_it_is() {
    let golden = [
        "01030100 0164 00ac02ec020000",
        "01030100 10 30313233343536373839616263646566 05020900",
        "01030100 05 c3bc626572 0207",
    ];
    frames::stay(&samples(), &golden);
}

#[test]
fn lengths_are_foretold() {
    frames::lengths_are_foretold(&samples());
}

#[test]
fn what_is_no_name_is_no_message() {
    let long = [&[17][..], &[b'a'; 17], &[2, 7]].concat();
    // Empty, too long, no UTF-8, cut short, and longer than any frame.
    for bytes in [
        &[0, 2, 7][..],
        &long,
        &[2, 0xc3, 0x28, 2, 7],
        &[9, b'a'],
        &[0xff, 0xff, 0xff, 0xff, 0x0f, b'a'],
    ] {
        assert!(postcard::from_bytes::<Message>(bytes).is_err(), "{bytes:?}");
    }
}

/// With the longest names and numbers, in frames of an IEEE 802.15.4 radio.
#[test]
fn a_long_list_comes_in_frames_of_the_budget() {
    let far = |nth: u64| Member::new(u64::MAX - nth, u32::MAX);
    let mut config = Config::radio(3);
    config.section.max_lives = 3;
    let mut node = Node::new(u64::MAX - 99, config);
    let section = name("0123456789abcdef");
    for nth in 0..9 {
        let (number, after) = (u64::MAX / 2 + nth, None);
        let request = Request {
            number,
            up_to: number + 64,
            last: 0,
        };
        let message = selvedge_camera::Message::Request { request, after };
        let message = Message { section, message };
        let from = far(nth);
        node.step(Input::Message { from, message }).unwrap();
    }
    let mut lists = 0;
    for effect in &node.effects {
        if let Effect::Send { message, .. } = effect {
            let envelope = Envelope {
                from: far(99),
                message: message.clone(),
            };
            let frame = postcard::to_extend(&envelope, vec![VERSION, KIND]).unwrap();
            assert!(frame.len() <= 127, "{} bytes", frame.len());
            let message = &message.message;
            lists += usize::from(
                matches!(message, selvedge_camera::Message::Ok { rivals, .. } if !rivals.is_empty()),
            );
        }
    }
    assert_eq!(lists, 8);
}
