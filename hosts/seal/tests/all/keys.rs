//! Keys, their files, and their rotation.

use selvedge_core::NodeId;
use selvedge_seal::{
    Epoch, Key, KeyError, KeyFileError, KeyName, Keyring, NotAName, Opener, Sealer, Unopened,
    create_key_file, read_group_key_file, read_key_file,
};

use crate::{open, opener, ring, seal, sealer};

/// The new key is put last everywhere, then first everywhere, then the old key is removed: all along, node by
/// node, each node opens the datagrams of each other.
#[test]
fn keys_are_rotated_without_a_gap() {
    let stages: [&[u8]; 4] = [&[1], &[1, 2], &[2, 1], &[2]];
    let mut nodes: Vec<(Sealer, Opener)> = (0..3).map(|id| (sealer(id, 1), opener())).collect();
    let all_hear_all = |nodes: &mut Vec<(Sealer, Opener)>| {
        for from in 0..nodes.len() {
            let datagram = seal(&mut nodes[from].0, b"here");
            for (to, node) in nodes.iter_mut().enumerate() {
                let received = open(&mut node.1, &datagram);
                assert_eq!(received, Ok(NodeId(from as u64)), "{from} to {to}");
            }
        }
    };
    all_hear_all(&mut nodes);
    for stage in &stages[1..] {
        for node in 0..nodes.len() {
            nodes[node].0.rotate(&ring(stage));
            nodes[node].1.rotate(ring(stage));
            all_hear_all(&mut nodes);
        }
    }
    // A node that has only the old key is excluded.
    let left_behind = seal(&mut sealer(9, 1), b"hello?");
    assert_eq!(open(&mut nodes[0].1, &left_behind), Err(Unopened::WrongKey));
}

/// A known session uses the ring as it is now, and counters that were seen stay seen.
#[test]
fn a_key_that_was_taken_out_opens_nothing_any_more() {
    let (mut sealer, mut opener) = (sealer(5, 1), opener());
    let seen = seal(&mut sealer, b"seen");
    assert_eq!(open(&mut opener, &seen), Ok(NodeId(5)));
    opener.rotate(ring(&[2]));
    let late = seal(&mut sealer, b"late");
    assert_eq!(open(&mut opener, &late), Err(Unopened::WrongKey));
    opener.rotate(ring(&[2, 1]));
    assert_eq!(open(&mut opener, &late), Ok(NodeId(5)));
    assert_eq!(open(&mut opener, &seen), Err(Unopened::Replayed(NodeId(5))));
}

#[test]
fn a_ring_is_read_and_bad_lines_are_named() {
    let key = "0f".repeat(32);
    let ring = format!("# ours\n\n  {key}  # since spring\n{}\n", "AA".repeat(32));
    assert!(Keyring::parse(&ring).is_ok());
    let line = |line| Err(KeyError::Line { line });
    assert_eq!(Keyring::parse(&format!("{key}\n{}", &key[1..])), line(2));
    assert_eq!(Keyring::parse(&format!("#\n{key}00")), line(2));
    assert_eq!(Keyring::parse("zz"), line(1));
    assert_eq!(Keyring::parse("# nothing\n"), Err(KeyError::None));
    let many = format!("{key}\n").repeat(9);
    assert_eq!(Keyring::parse(&many), Err(KeyError::TooMany { limit: 8 }));
}

#[test]
fn a_key_is_not_shown() {
    let ring = ring(&[0x17]);
    let shown = format!("{ring:?} {:?}", Opener::new(ring.clone(), String::new(), 1));
    let shown = shown + &format!("{:?}", Sealer::new(&ring, "", NodeId(1), Epoch(1)));
    for bytes in ["1717", "23, 23", "1, 7"] {
        assert!(!shown.contains(bytes), "{shown}");
    }
}

#[cfg(unix)]
#[test]
fn a_key_file_is_made_for_one_reader_and_read_only_so() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("selvedge-key-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("mesh.key");
    create_key_file(&path).unwrap();
    let ring = read_key_file(&path).unwrap();
    assert_eq!(ring, read_key_file(&path).unwrap());
    assert!(matches!(
        create_key_file(&path),
        Err(KeyFileError::Create { .. })
    ));
    for mode in [0o640, 0o604, 0o620] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let refused = read_key_file(&path).unwrap_err();
        assert!(matches!(refused, KeyFileError::Permissions { .. }));
        assert!(refused.to_string().contains("chmod 600"), "{refused}");
    }
    for (mode, is_taken) in [
        (0o400, true),
        (0o440, true),
        (0o640, true),
        (0o660, false),
        (0o650, false),
        (0o644, false),
    ] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        match read_group_key_file(&path) {
            Ok(read) => assert!(is_taken && read == ring, "{mode:03o}"),
            Err(refused) => {
                assert!(!is_taken, "{refused}");
                assert!(refused.to_string().contains("chmod 640"), "{refused}");
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(matches!(
        read_key_file(&path),
        Err(KeyFileError::Missing { .. })
    ));
}

#[test]
fn a_name_of_a_key_is_read_as_it_is_shown() {
    let key = Key::random().unwrap();
    let name = key.name();
    assert_eq!(name.to_string().parse(), Ok(name));
    assert_eq!(Keyring::of(key).names().collect::<Vec<_>>(), [name]);
    for text in ["", "0123456", "012345678", "0123456g"] {
        assert_eq!(text.parse::<KeyName>(), Err(NotAName), "{text}");
    }
}
