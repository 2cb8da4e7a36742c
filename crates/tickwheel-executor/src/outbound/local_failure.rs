//! Which errors of connecting are this machine's own: the target was never asked, and a job must not pay for it.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use rustix::io::Errno;

/// What this machine lacks, if that is why no connection came about.
pub fn local_failure(error: &io::Error) -> Option<String> {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS | Errno::ADDRNOTAVAIL) => {
            Some(error.to_string())
        }
        Some(Errno::NETUNREACH | Errno::NETDOWN) if has_no_network() => Some(error.to_string()),
        Some(_) => None,
        // Looking up a name needs files and sockets, and does not say when it got none.
        None => File::open("/dev/null").err().as_ref().and_then(local_failure),
    }
}

/// Whether there is no way out of this machine at all. If there is one, it is the target that is out of reach.
/// Addresses of examples (RFC 5737, RFC 3849) and a socket that only looks up its route: nothing is sent.
fn has_no_network() -> bool {
    let no_route = |from: SocketAddr, to: SocketAddr| {
        UdpSocket::bind(from).and_then(|socket| socket.connect(to)).is_err()
    };
    no_route((Ipv4Addr::UNSPECIFIED, 0).into(), (Ipv4Addr::new(192, 0, 2, 1), 9).into())
        && no_route(
            (Ipv6Addr::UNSPECIFIED, 0).into(),
            (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 9).into(),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_machine_lacks_is_its_own_failure_and_what_a_target_says_is_not() {
        let is_own = |errno: Errno| local_failure(&errno.into()).is_some();
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::ADDRNOTAVAIL] {
            assert!(is_own(errno), "{errno}");
        }
        for errno in
            [Errno::CONNREFUSED, Errno::CONNRESET, Errno::HOSTUNREACH, Errno::TIMEDOUT, Errno::ACCESS]
        {
            assert!(!is_own(errno), "{errno}");
        }
        assert_eq!(is_own(Errno::NETUNREACH), has_no_network());
        assert!(local_failure(&io::Error::other("the name has no address")).is_none());
    }
}
