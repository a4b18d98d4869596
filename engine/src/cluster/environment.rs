//! Where the processes of a job are described: a file of hosts, variables, Slurm, or Kubernetes.

use std::fs;
use std::path::Path;

use super::ClusterError;
use super::membership::{HOSTS, Membership, Result, number, parse_addresses, parse_hosts, wrong};
use super::secret::{SECRET, SECRET_FILE, Secret};
use super::slurm;

/// The number of this process.
pub const PROCESS: &str = "MEGAGRID_PROCESS";

impl Membership {
    /// Reads a file with the `host:port` of a process in each line; `#` begins a comment. There is no secret yet.
    ///
    /// # Errors
    /// A file that cannot be read; a line that is no address or was there before; a number without a line.
    pub fn from_hostfile(path: &Path, process: usize) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|source| ClusterError::File { path: path.to_owned(), source })?;
        let file = path.display().to_string();
        let addresses = parse_hostfile(&file, &text)?;
        let membership = Self { process, addresses, secret: Secret::default() };
        membership.check_as(&file)?;
        Ok(membership)
    }

    /// Finds what the environment says about the processes, through `variable`, which returns the value of a variable.
    /// `None`: one process.
    ///
    /// - `MEGAGRID_HOSTS` and `MEGAGRID_PROCESS`. Without the latter the number is that of an indexed job of Kubernetes
    ///   (`JOB_COMPLETION_INDEX`), or of a pod of a stateful set (`HOSTNAME` ends with `-2`).
    /// - Otherwise that of a Slurm step: the tasks of `srun`, at ports from `MEGAGRID_PORT_BASE` on each node, by default from one that
    ///   follows from the numbers of job and step.
    ///
    /// The secret is `MEGAGRID_SECRET`, or in the file that `MEGAGRID_SECRET_FILE` names.
    ///
    /// # Errors
    /// Variables that contradict each other or cannot be understood.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        let secret = Secret::from_environment(&variable)?;
        let (process, addresses) = match variable(HOSTS) {
            Some(hosts) => (own_number(&variable)?, parse_hosts(&hosts)?),
            None if variable(PROCESS).is_some() => {
                return Err(wrong(PROCESS, format!("is set, and {HOSTS} is not; set both or neither")));
            }
            None => match slurm::membership(&variable)? {
                Some(found) => found,
                None => return Ok(None),
            },
        };
        let membership = Self { process, addresses, secret };
        if membership.addresses.len() == 1 && membership.process == 0 {
            return Ok(None);
        }
        membership.check_as(HOSTS)?;
        Ok(Some(membership))
    }
}

impl Secret {
    /// Reads the secret of a file, without the end of its last line.
    ///
    /// # Errors
    /// A file that cannot be read, or is empty.
    pub fn from_file(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(|source| ClusterError::File { path: path.to_owned(), source })?;
        let secret = bytes.trim_ascii_end();
        if secret.is_empty() {
            return Err(wrong(path.display().to_string(), "is empty; expected the secret of the job"));
        }
        Ok(Self::new(secret))
    }

    /// Reads what the environment says, through `variable`: `MEGAGRID_SECRET`, or the file that `MEGAGRID_SECRET_FILE` names.
    fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        match (variable(SECRET), variable(SECRET_FILE)) {
            (None, None) => Ok(Self::default()),
            (None, Some(path)) => Self::from_file(Path::new(&path)),
            (Some(_), Some(_)) => Err(wrong(SECRET, format!("is set, and {SECRET_FILE} too; set one of them"))),
            (Some(secret), None) if secret.is_empty() => {
                Err(wrong(SECRET, "is empty; set it to the job's, or not at all"))
            }
            (Some(secret), None) => Ok(Self::new(secret)),
        }
    }
}

/// Reads the lines of a file of hosts.
fn parse_hostfile(file: &str, text: &str) -> Result<Vec<String>> {
    let lines = text.lines().enumerate().map(|(at, line)| {
        let content = line.split('#').next().unwrap_or_default().trim();
        (format!("{file}:{}", at + 1), content)
    });
    parse_addresses(lines.filter(|(_, content)| !content.is_empty()))
}

/// Returns the number of this process where the hosts are given.
fn own_number(variable: &impl Fn(&str) -> Option<String>) -> Result<usize> {
    for name in [PROCESS, "JOB_COMPLETION_INDEX"] {
        if let Some(value) = variable(name) {
            return number(name, &value);
        }
    }
    let name = variable("HOSTNAME").unwrap_or_default();
    let ordinal = name.rsplit_once('-').and_then(|(_, ordinal)| ordinal.parse().ok());
    ordinal.ok_or_else(|| wrong(HOSTS, format!("is set, and {PROCESS}, the number of this process, is not")))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn environment(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        |name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    fn found(variables: &[(&str, &str)]) -> Option<Membership> {
        Membership::from_environment(environment(variables)).unwrap()
    }

    fn refused(variables: &[(&str, &str)]) -> String {
        Membership::from_environment(environment(variables)).unwrap_err().to_string()
    }

    #[test]
    fn nothing_set_is_one_process() {
        assert_eq!(found(&[("HOSTNAME", "laptop-3")]), None);
        assert_eq!(found(&[(HOSTS, "a:1"), (PROCESS, "0")]), None);
        assert_eq!(found(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1"), ("SLURM_JOB_NODELIST", "n1")]), None);
    }

    #[test]
    fn variables_name_the_processes() {
        let addresses = ["a:1", "[::1]:2"].map(str::to_owned).to_vec();
        let of = |process, secret| Some(Membership { process, addresses: addresses.clone(), secret });
        let expected = |process| of(process, Secret::default());
        assert_eq!(found(&[(HOSTS, "a:1, [::1]:2"), (PROCESS, "1")]), expected(1));
        assert_eq!(found(&[(HOSTS, "a:1,[::1]:2"), ("JOB_COMPLETION_INDEX", "0")]), expected(0));
        assert_eq!(found(&[(HOSTS, "a:1,[::1]:2"), ("HOSTNAME", "mf-run-1")]), expected(1));
        let secret = [(HOSTS, "a:1,[::1]:2"), (PROCESS, "0"), (SECRET, "xyzzy")];
        assert_eq!(found(&secret), of(0, Secret::new("xyzzy")));
        assert!(refused(&[(HOSTS, "a:1,b:2"), ("HOSTNAME", "laptop")]).contains("MEGAGRID_PROCESS"));
        assert!(refused(&[(PROCESS, "1")]).contains("MEGAGRID_HOSTS is not"));
        assert!(refused(&[(HOSTS, "a:1,b:2"), (PROCESS, "2")]).contains("numbered 0 to 1"));
        assert!(refused(&[(HOSTS, "a:1,b:2"), (PROCESS, "-1")]).contains("\"-1\""));
        assert!(refused(&[(HOSTS, "a:1,a:1"), (PROCESS, "0")]).contains("twice"));
        for bad in ["b", ":7", "b:0", "b:65536", "::1:7", "b c:7", ""] {
            assert!(refused(&[(HOSTS, &format!("a:1,{bad}")), (PROCESS, "0")]).contains("expected"), "{bad}");
        }
    }

    #[test]
    fn host_files_are_refused_by_line() {
        let parse = |text| parse_hostfile("hosts", text).map_err(|error| error.to_string());
        assert_eq!(parse("# all\na:1\n\n b:2 # the other\n").unwrap(), ["a:1", "b:2"]);
        assert_eq!(parse("a:1\n\nb\n").unwrap_err(), "hosts:3: \"b\" has no port; expected host:port");
        assert!(parse("a:1\na:1\n").unwrap_err().starts_with("hosts:2: \"a:1\" stands there twice"));
        let missing = Membership::from_hostfile(Path::new("/nowhere/hosts"), 0).unwrap_err().to_string();
        assert!(missing.starts_with("/nowhere/hosts: "), "{missing}");
    }

    #[test]
    fn a_secret_is_said_once() {
        let secret = |variables: &[(&str, &str)]| Secret::from_environment(environment(variables));
        let refused = |variables: &[(&str, &str)]| secret(variables).unwrap_err().to_string();
        assert_eq!(secret(&[]).unwrap(), Secret::default());
        assert_eq!(secret(&[(SECRET, "xyzzy")]).unwrap(), Secret::new("xyzzy"));
        assert!(refused(&[(SECRET, "")]).contains("is empty"));
        assert!(refused(&[(SECRET, "a"), (SECRET_FILE, "b")]).contains("set one of them"));
        assert!(refused(&[(SECRET_FILE, "/nowhere/secret")]).starts_with("/nowhere/secret: "));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        for (text, expected) in [("xyzzy\n", Some("xyzzy")), ("xyzzy", Some("xyzzy")), ("\n", None)] {
            fs::write(&path, text).unwrap();
            assert_eq!(Secret::from_file(&path).ok(), expected.map(Secret::new), "{text:?}");
        }
    }
}
