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

/// The names that the command prints, in the order of the file.
fn names(arguments: &[&str]) -> Vec<String> {
    let output = selvedge(arguments);
    assert!(output.status.success(), "{}", complaint(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|it| it.split_once("  ").unwrap());
    let uses: Vec<(String, String)> = lines.map(|it| (it.0.into(), it.1.into())).collect();
    assert_eq!(uses[0].1, "seals and opens");
    assert!(uses[1..].iter().all(|it| it.1 == "opens"));
    uses.into_iter().map(|it| it.0).collect()
}

/// Comments, the mode and other keys stay, also where the last line has no end.
#[cfg(unix)]
#[test]
fn keys_are_added_put_first_and_removed() {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = Folder::new("rotated");
    let path = folder.key("mesh.key");
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.trim_end()).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path("link.key");
    symlink(&path, &link).unwrap();
    let refused = selvedge(&["keys", "list", &link]);
    assert!(complaint(&refused).contains("--group-reads-key"));
    let of_group = |verb: &str, rest: &[&str]| {
        names(&[&["keys", verb, "--group-reads-key", &link], rest].concat())
    };
    let first = of_group("list", &[]).remove(0);
    let both = of_group("add", &[]);
    assert_eq!((both.len(), &both[0]), (2, &first));
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let swapped = of_group("use", &[&both[1]]);
    assert_eq!(swapped, [both[1].clone(), first.clone()]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let refused = selvedge(&["keys", "remove", &link, &both[1]]);
    assert!(complaint(&refused).contains("selvedge keys use"));
    assert_eq!(names(&["keys", "remove", &link, &first]), [both[1].clone()]);
    let unknown = selvedge(&["keys", "use", &link, &first]);
    assert!(complaint(&unknown).contains("selvedge keys list"));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# Keys of a mesh") && text.lines().count() == 2);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let other = format!("{path}.next");
    fs::write(&other, "").unwrap();
    let busy = selvedge(&["keys", "add", &path]);
    assert!(complaint(&busy).contains(&other));
    assert!(fs::exists(&other).unwrap(), "another command has made it");
    fs::remove_file(&other).unwrap();
    for _ in 1..8 {
        names(&["keys", "add", &path]);
    }
    let full = selvedge(&["keys", "add", &path]);
    assert!(complaint(&full).contains("the limit"));
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 2);
}

/// Of three nodes with one file each, which read it again. None fails meanwhile.
#[cfg(unix)]
#[test]
fn nodes_read_their_key_file_again_at_a_signal() {
    use std::fs;

    use crate::command::running::{Running, SELVEDGE};

    let folder = Folder::new("reread");
    let path = folder.key("mesh.key");
    let flags = ["node", "--key", &path, "--period", "100", "--listen"];
    let mut one = Running::start(SELVEDGE, &[&flags[..], &["127.0.0.1:0"]].concat());
    let line = one.wait_for("listens at");
    let address = line.rsplit(' ').next().unwrap().to_owned();
    let join = ["127.0.0.1:0", "--join", &address];
    let mut two = Running::start(SELVEDGE, &[&flags[..], &join].concat());
    two.wait_for("joined");
    one.wait_for("joined");
    let first = names(&["keys", "list", &path]).remove(0);
    let added = names(&["keys", "add", &path]).remove(1);
    let mut reread = |expected: &str| {
        for node in [&mut one, &mut two] {
            node.signal("HUP");
            node.wait_for(&format!("keys from now on: {expected};"));
        }
    };
    reread(&format!("{first}, {added}"));
    names(&["keys", "use", &path, &added]);
    reread(&format!("{added}, {first}"));
    names(&["keys", "remove", &path, &first]);
    reread(&added);
    // A damaged file changes nothing.
    fs::write(&path, "no key").unwrap();
    one.signal("HUP");
    one.wait_for("the keys stay as they are");
    fs::write(&path, "").unwrap();
    fs::remove_file(&path).unwrap();
    for node in [&mut one, &mut two] {
        assert!(!node.said_by_now().iter().any(|it| it.contains("fail")));
        assert!(node.leave().success());
    }
}
