//! Keys on the command line: sealed unless somebody says otherwise.

use crate::running::{Folder, complaint, selvedge};

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

/// Whatever a key file has become, the command that the error names makes one that a node takes.
#[cfg(unix)]
#[test]
fn the_advice_about_a_key_file_works() {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use crate::running::{Running, SELVEDGE};

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
        let told = Command::new("sh").args(["-c", &advice]).output().unwrap();
        assert!(told.status.success(), "{complaint}: {told:?}");
        let mut node = Running::start(SELVEDGE, &[&ANYWHERE[..], &["--key", path]].concat());
        node.wait_for("listens at");
    }
}
