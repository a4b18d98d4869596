//! Ports of this machine that are kept for processes about to listen there.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

/// Free ports of this machine, for the processes of a job that run on it.
///
/// On Linux they are kept while this value lives: a process that names one can listen there, as often as it starts again, and
/// nobody is given it by chance. Elsewhere they were free a moment ago.
pub struct FreePorts {
    addresses: Vec<String>,
    /// A socket that is bound and does not listen keeps its port, and yet lets another listen there if both reuse addresses,
    /// as those of the standard library do. Other systems refuse the second.
    _held: Vec<Socket>,
}

impl FreePorts {
    /// Finds as many free ports, all different, of the loopback interface.
    ///
    /// # Errors
    /// Returns the system's error if it has no more ports or files to open.
    pub fn find(count: usize) -> io::Result<Self> {
        let mut held = (0..count).map(|_| bound()).collect::<io::Result<Vec<_>>>()?;
        let name = |socket: &Socket| {
            let address = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
            Ok(address.to_string())
        };
        let addresses = held.iter().map(name).collect::<io::Result<Vec<_>>>()?;
        if cfg!(not(target_os = "linux")) {
            held.clear();
        }
        Ok(Self { addresses, _held: held })
    }

    /// Returns `host:port` of each.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }
}

fn bound() -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    if cfg!(unix) {
        socket.set_reuse_address(true)?;
    }
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn kept_ports_are_for_those_who_name_them() {
        let ports = FreePorts::find(3).unwrap();
        let [first, ..] = ports.addresses() else { panic!("no addresses") };
        assert!(TcpStream::connect(first).is_err(), "somebody listens");
        for _ in 0..2 {
            let listener = TcpListener::bind(first).unwrap();
            let _stream = TcpStream::connect(first).unwrap();
            listener.accept().unwrap();
        }
        for _ in 0..100 {
            let other = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
            assert!(!ports.addresses().contains(&other));
        }
    }
}
