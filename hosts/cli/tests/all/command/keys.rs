//! Keys on the command line: datagrams are sealed unless a flag forbids it.

use crate::command::running::{Folder, complaint, selvedge};

const ANYWHERE: [&str; 3] = ["node", "--listen", "127.0.0.1:0"];

#[test]
fn a_node_without_a_key_says_how_to_get_one() {
    let output = selvedge(&ANYWHERE);
    assert_eq!(output.status.code(), Some(2));
    let complaint = complaint(&output);
    assert_eq!(complaint.lines().count(), 1);
    assert!(complaint.contains("selvedge key") && complaint.contains("--plain"));
}

#[test]
fn a_key_file_is_not_written_over_and_a_missing_one_is_named() {
    let folder = Folder::new("keys");
    let path = folder.key("mesh.key");
    let before = std::fs::read_to_string(&path).unwrap();
    let again = selvedge(&["key", &path]);
    assert_eq!(again.status.code(), Some(1));
    assert!(complaint(&again).contains(&path));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
    let missing = folder.path("no.key");
    let output = selvedge(&[&ANYWHERE[..], &["--key", &missing]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains(&missing) && complaint(&output).contains("selvedge key"));
}

#[cfg(unix)]
#[test]
fn a_key_file_that_others_may_read_is_refused_with_the_mend() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("wide");
    let path = folder.key("mesh.key");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let output = selvedge(&[&ANYWHERE[..], &["--key", &path]].concat());
    assert_eq!(output.status.code(), Some(1));
    let complaint = complaint(&output);
    assert_eq!(complaint.lines().count(), 1);
    assert!(complaint.contains(&format!("chmod 600 {path}")) && complaint.contains("644"));
}

/// The remedy in the error about any broken key file gives a key file that a node accepts.
#[cfg(unix)]
#[test]
fn the_advice_about_a_key_file_works() {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use crate::command::running::{Running, SELVEDGE};

    let folder = Folder::new("damaged keys");
    let path = folder.path("mesh.key");
    let far = folder.path("no/such folder/mesh.key");
    let half = "0123456789abcdef".repeat(3);
    let cases: [(&str, Option<&[u8]>); 6] = [
        (&path, None),
        (&path, Some(b"")),
        (&path, Some(half.as_bytes())),
        (&path, Some(b"# all that is left\n")),
        (&path, Some(&[0xFF, 0xFE, 0x00, 0x0A])),
        (&far, None),
    ];
    for (path, content) in cases {
        std::fs::remove_file(path).ok();
        if let Some(content) = content {
            std::fs::write(path, content).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let output = selvedge(&[&ANYWHERE[..], &["--key", path]].concat());
        assert_eq!(output.status.code(), Some(1));
        let complaint = complaint(&output);
        assert_eq!(complaint.lines().count(), 1);
        let advice = complaint.split('`').nth(1).unwrap();
        let advice = advice.replace("selvedge key", &format!("{SELVEDGE} key"));
        let notified = Command::new("sh").args(["-c", &advice]).output().unwrap();
        assert!(notified.status.success(), "{complaint}: {notified:?}");
        let mut node = Running::start(SELVEDGE, &[&ANYWHERE[..], &["--key", path]].concat());
        node.wait_for("listens at");
    }
}

/// An unreadable key file is refused at once, for any length and kind.
#[cfg(unix)]
#[test]
fn what_cannot_be_a_key_file_is_named_and_not_read_to_its_end() {
    use std::fs::{File, Permissions, create_dir, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new("no-key-files");
    let refused = |path: &str| {
        let output = selvedge(&[&ANYWHERE[..], &["--key", path]].concat());
        assert_eq!(output.status.code(), Some(1));
        let complaint = complaint(&output);
        assert_eq!(complaint.lines().count(), 1);
        complaint
    };
    // Removing a folder's rights of other users is no remedy.
    let place = folder.path("folder");
    create_dir(&place).unwrap();
    set_permissions(&place, Permissions::from_mode(0o755)).unwrap();
    let complaint = refused(&place);
    assert!(
        complaint.contains("directory") && !complaint.contains("chmod"),
        "{complaint}"
    );
    // It takes no room on the disk, and would take a gigabyte of memory.
    let endless = folder.path("endless");
    File::create(&endless).unwrap().set_len(1 << 30).unwrap();
    set_permissions(&endless, Permissions::from_mode(0o600)).unwrap();
    let complaint = refused(&endless);
    assert!(complaint.contains("longer than"), "{complaint}");
}

/// A full disk, or a limit on files: no file is left that is in the way later.
#[cfg(target_os = "linux")]
#[test]
fn a_key_file_that_could_not_be_written_leaves_its_name_free() {
    use std::process::Command;

    use crate::command::running::SELVEDGE;

    let folder = Folder::new("full");
    let path = folder.path("mesh.key");
    // The signal of the limit would kill the command; a full disk sends none.
    let limited = format!("trap '' XFSZ; ulimit -f 0; exec {SELVEDGE} key {path}");
    let output = Command::new("sh").args(["-c", &limited]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(complaint(&output).contains(&path));
    assert!(!std::fs::exists(&path).unwrap(), "it left a file");
    folder.key("mesh.key");
}
