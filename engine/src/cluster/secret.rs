//! The secret of a job: a process that does not know it is turned away before anything else of it is read.
//!
//! At the beginning of each connection both ends prove to each other that they know it, without saying it: by an HMAC (RFC 2104, with
//! SHA-256, whose key is the secret's digest) over a number of each end, drawn for this connection.
//!
//! ```text
//! who connects:  magic  protocol  number
//! who listens:   magic  protocol  number  HMAC("listens", both numbers)
//! who connects:  HMAC("connects", both numbers)  its hello
//!                  4       4        32             32                    <- bytes
//! ```
//!
//! Without a secret all know the empty one. What follows is neither signed nor encrypted: who can change what is on the way can still
//! do harm. Where that has to be feared, connections belong in a tunnel (see the book, "Several machines").

use std::fmt;
use std::io::{self, Read, Write};

use hmac::digest::Key;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::frame::{self, FrameError};

/// The secret itself.
pub const SECRET: &str = "MEGAGRID_SECRET";
/// A file that holds the secret.
pub const SECRET_FILE: &str = "MEGAGRID_SECRET_FILE";

/// What all processes of a job know, and nobody else. It is not shown by `Debug`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Makes a secret of some bytes; none are the secret that all know.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// Draws a secret: 64 letters and digits.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn draw() -> io::Result<String> {
        Ok(random()?.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn proof(&self, end: &str, numbers: [Number; 2]) -> Hmac<Sha256> {
        let mut key = Key::<Hmac<Sha256>>::default();
        let digest = Sha256::digest(&self.0);
        key[..digest.len()].copy_from_slice(&digest);
        let mut proof = Hmac::<Sha256>::new(&key);
        proof.update(end.as_bytes());
        numbers.iter().for_each(|number| proof.update(number));
        proof
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_empty() { "none" } else { "some" })
    }
}

/// A number that one end draws for one connection.
type Number = [u8; 32];

const LISTENS: &str = "listens";
const CONNECTS: &str = "connects";

fn random() -> io::Result<Number> {
    let mut number = Number::default();
    getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(number)
}

/// The end that connects. Tells whether both know the same secret; if not, the other end learns that too.
pub(super) fn connect(mut stream: impl Read + Write, secret: &Secret) -> Result<bool, FrameError> {
    let mine = random()?;
    frame::write_protocol(&mut stream)?;
    stream.write_all(&mine)?;
    frame::read_protocol(&mut stream)?;
    let [theirs, proof] = [read(&mut stream)?, read(&mut stream)?];
    let is_same = secret.proof(LISTENS, [mine, theirs]).verify_slice(&proof).is_ok();
    // Who listens and does not know the secret gets nothing to guess it by.
    let own =
        if is_same { secret.proof(CONNECTS, [mine, theirs]).finalize().into_bytes().into() } else { Number::default() };
    stream.write_all(&own)?;
    Ok(is_same)
}

/// The end that listens. Tells whether both know the same secret.
pub(super) fn listen(mut stream: impl Read + Write, secret: &Secret) -> Result<bool, FrameError> {
    frame::read_protocol(&mut stream)?;
    let (theirs, mine) = (read(&mut stream)?, random()?);
    frame::write_protocol(&mut stream)?;
    let proof = secret.proof(LISTENS, [theirs, mine]).finalize().into_bytes();
    stream.write_all(&[mine, proof.into()].concat())?;
    let proof = read(&mut stream)?;
    Ok(secret.proof(CONNECTS, [theirs, mine]).verify_slice(&proof).is_ok())
}

fn read(mut stream: impl Read) -> io::Result<Number> {
    let mut number = Number::default();
    stream.read_exact(&mut number)?;
    Ok(number)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// What both ends of a connection find, each with its secret.
    fn meet(connecting: &str, listening: &str) -> [bool; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let secret = Secret::new(listening);
        let other = std::thread::spawn(move || listen(&listener.accept().unwrap().0, &secret).unwrap());
        [connect(&stream, &Secret::new(connecting)).unwrap(), other.join().unwrap()]
    }

    #[test]
    fn only_the_same_secret_is_let_in() {
        for (connecting, listening) in [("", ""), ("xyzzy", "xyzzy")] {
            assert_eq!(meet(connecting, listening), [true; 2]);
        }
        for (connecting, listening) in [("", "xyzzy"), ("xyzzy", ""), ("xyzzy", "xyzzY")] {
            assert_eq!(meet(connecting, listening), [false; 2]);
        }
    }

    /// What was heard of one connection is of no use on another, nor is what the end that listens says itself.
    #[test]
    fn proofs_are_of_one_connection_and_of_one_end() {
        let secret = Secret::new("xyzzy");
        let proof = |end: &str, numbers: [Number; 2]| secret.proof(end, numbers).finalize().into_bytes();
        let [a, b] = [[1; 32], [2; 32]];
        let all = [proof(LISTENS, [a, b]), proof(CONNECTS, [a, b]), proof(LISTENS, [b, a]), proof(CONNECTS, [b, b])];
        assert!((0..4).all(|i| (0..i).all(|j| all[i] != all[j])));
        assert_ne!(Secret::draw().unwrap(), Secret::draw().unwrap());
        assert_eq!(format!("{:?} {:?}", secret, Secret::default()), "some none");
    }
}
