//! Files and directories get the permissions that the umask leaves.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::Place;

#[test]
fn outputs_get_the_permissions_that_the_umask_leaves() {
    for (umask, of_files, of_directories) in [("027", 0o640, 0o750), ("022", 0o644, 0o755)] {
        let place = Place::new();
        let script = format!(
            "umask {umask}; cd \"$0\"; \"$1\" mf ratings.csv -q --iterations 2 --model model \
            --json record.json --report report.html --checkpoint kept && \"$1\" convert ratings.csv ratings.mgrid"
        );
        place.ratings();
        let program = assert_cmd::cargo::cargo_bin!("megagrid");
        let output = Command::new("sh").arg("-c").arg(script).arg(place.path("")).arg(program).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mode = |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
        for file in ["record.json", "report.html", "ratings.mgrid", "model/users.npy", "model/users.parquet"] {
            assert_eq!(mode(file), of_files, "{file} under umask {umask}");
        }
        for directory in ["model", "kept"] {
            assert_eq!(mode(directory), of_directories, "{directory} under umask {umask}");
        }
    }
}
