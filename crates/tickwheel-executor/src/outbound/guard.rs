//! Which addresses may be reached.
//!
//! A pure table over addresses, without names: whoever connects resolves first, asks here about each address, and
//! connects to exactly the address that was asked about. Unknown ground is refused: outside the global unicast space of
//! IPv6 nothing counts as public.
//!
//! Deliberately not here: names, ports (but for exceptions), and lists of one's own making.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The policy. By default only public addresses may be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressGuard {
    reach: Reach,
    exceptions: Vec<SocketAddr>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reach {
    #[default]
    PublicOnly,
    PublicAndPrivate,
}

/// What kind of ground an address is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ground {
    /// The internet.
    Public,
    /// This machine, or a network that belongs to the operator.
    Private,
    /// Nowhere a request could sensibly go: groups, examples, the future.
    Reserved,
}

impl AddressGuard {
    /// Only public addresses.
    pub fn public_only() -> Self {
        Self::default()
    }

    /// Public ones, this machine, and private and link-local networks; still no multicast or reserved ones.
    pub fn allow_private() -> Self {
        Self { reach: Reach::PublicAndPrivate, exceptions: Vec::new() }
    }

    /// Additionally exactly this address and port.
    #[must_use]
    pub fn with_exception(mut self, address: SocketAddr) -> Self {
        self.exceptions.push(address);
        self
    }

    /// Whether a connection to `address` may be made.
    pub fn allows(&self, address: SocketAddr) -> bool {
        let by_ground = match ground_of(address.ip()) {
            Ground::Public => true,
            Ground::Private => self.reach == Reach::PublicAndPrivate,
            Ground::Reserved => false,
        };
        by_ground || self.exceptions.contains(&address)
    }
}

fn ground_of(ip: IpAddr) -> Ground {
    match ip {
        IpAddr::V4(ip) => ground_of_v4(ip),
        IpAddr::V6(ip) => match embedded_v4(ip) {
            Some(v4) => ground_of_v4(v4),
            None => ground_of_v6(ip),
        },
    }
}

fn ground_of_v4(ip: Ipv4Addr) -> Ground {
    match ip.octets() {
        // Connecting to the unspecified address reaches this machine.
        [0, 0, 0, 0]
        | [10, ..]
        | [100, 64..=127, ..] // carrier-grade NAT
        | [127, ..]
        | [169, 254, ..] // link-local: the metadata services of clouds
        | [172, 16..=31, ..]
        | [192, 168, ..]
        | [198, 18..=19, ..] => Ground::Private, // benchmarking: used as private ground in practice
        _ if is_cloud_internal(ip) => Ground::Private,
        [0, ..]
        | [192, 0, 0, _] // protocol assignments
        | [192, 0, 2, _] // documentation
        | [192, 88, 99, _] // 6to4 relays
        | [198, 51, 100, _] // documentation
        | [203, 0, 113, _] // documentation
        | [224..=255, ..] => Ground::Reserved, // multicast, reserved, broadcast
        _ => Ground::Public,
    }
}

/// Services of clouds at addresses that look public and lead somewhere only from inside: whoever reaches them is taken
/// for the machine itself. Most such services are on ground that is refused anyway: 169.254.169.254 and its neighbours
/// (AWS, Azure, Google, Oracle and others), 100.100.100.200 (Alibaba, carrier-grade NAT), 192.0.0.192 (Oracle Classic,
/// protocol assignments), fd00:ec2::254 (AWS) and fd20:ce::254 (Google, both unique local).
const fn is_cloud_internal(ip: Ipv4Addr) -> bool {
    match ip.octets() {
        // Azure's WireServer: the goal state of a machine, with its certificates and secrets; DNS, DHCP and health
        // probes. https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
        [168, 63, 129, 16]
        // Equinix Metal: metadata.platformequinix.com (metadata.packet.net before).
        // https://deploy.equinix.com/developers/docs/metal/server-metadata/metadata/
        | [192, 80, 8, 124]
        // IBM Cloud: infrastructure services (161.26.0.0/16) and private endpoints of the others (166.8.0.0/14).
        // https://cloud.ibm.com/docs/vpc?topic=vpc-service-endpoints-for-vpc
        | [161, 26, ..]
        | [166, 8..=11, ..] => true,
        _ => false,
    }
}

fn ground_of_v6(ip: Ipv6Addr) -> Ground {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] // unspecified, loopback
        | [0xfc00..=0xfdff, ..] // unique local
        | [0xfe80..=0xfeff, ..] // link-local, and site-local of old
        | [0x0064, 0xff9b, 1, ..] // NAT64 with an operator's own prefix
        | [0x2001, 2, 0, ..] => Ground::Private, // benchmarking
        [0x2001, 0..=0x01ff, ..] // protocol assignments, Teredo among them
        | [0x2001, 0x0db8, ..] // documentation
        | [0x3fff, 0..=0x0fff, ..] => Ground::Reserved, // documentation
        [0x2000..=0x3fff, ..] => Ground::Public,
        _ => Ground::Reserved,
    }
}

/// The IPv4 address a packet to `ip` would end up at: mapped, compatible, translated, NAT64, 6to4.
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => return None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x0064, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => (high, low),
        _ => return None,
    };
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    Some(Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &[&str] = &[
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.1",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "168.63.129.15",
        "168.63.129.17",
        "161.25.255.255",
        "161.27.0.0",
        "166.7.255.255",
        "166.12.0.0",
        "192.80.8.123",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2a00:1450:4001:81b::200e",
        "2001:200::1",
        "2001:4860:4860::8888",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
    ];

    const PRIVATE: &[&str] = &[
        "0.0.0.0",
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.0",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.0.0",
        "169.254.169.254",
        "172.16.0.0",
        "172.31.255.255",
        "192.168.0.0",
        "192.168.255.255",
        "198.18.0.0",
        "198.19.255.255",
        "168.63.129.16",
        "::ffff:168.63.129.16",
        "64:ff9b::168.63.129.16",
        "2002:a83f:8110::1",
        "192.80.8.124",
        "161.26.0.10",
        "166.8.0.0",
        "166.11.255.255",
        "100.100.100.200",
        "fd20:ce::254",
        "::",
        "::1",
        "fc00::",
        "fdff:ffff::1",
        "fd00:ec2::254",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "2001:2::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:0:127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2002:c0a8:1::1",
    ];

    const RESERVED: &[&str] = &[
        "0.0.0.1",
        "0.255.255.255",
        "192.0.0.1",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "100::1",
        "2001::1",
        "2001:10::1",
        "2001:db8::1",
        "3fff::1",
        "4000::1",
        "5f00::1",
        "ff02::1",
        "::ffff:224.0.0.1",
        "64:ff9b::255.255.255.255",
        "2002:e000:1::",
    ];

    fn at(ip: &str) -> SocketAddr {
        SocketAddr::new(ip.parse().unwrap(), 80)
    }

    fn assert_all(guard: &AddressGuard, ips: &[&str], allowed: bool) {
        for ip in ips {
            assert_eq!(guard.allows(at(ip)), allowed, "{ip}");
        }
    }

    #[test]
    fn by_default_only_public_addresses_may_be_reached() {
        let guard = AddressGuard::public_only();
        assert_all(&guard, PUBLIC, true);
        assert_all(&guard, PRIVATE, false);
        assert_all(&guard, RESERVED, false);
        assert_eq!(guard, AddressGuard::default());
    }

    #[test]
    fn allowing_private_ones_still_refuses_what_is_reserved() {
        let guard = AddressGuard::allow_private();
        assert_all(&guard, PUBLIC, true);
        assert_all(&guard, PRIVATE, true);
        assert_all(&guard, RESERVED, false);
    }

    #[test]
    fn an_exception_opens_one_address_and_one_port() {
        let guard = AddressGuard::public_only().with_exception("127.0.0.1:9000".parse().unwrap());
        assert!(guard.allows("127.0.0.1:9000".parse().unwrap()));
        for other in ["127.0.0.1:9001", "127.0.0.2:9000", "[::ffff:127.0.0.1]:9000", "[::1]:9000"] {
            assert!(!guard.allows(other.parse().unwrap()), "{other}");
        }
    }
}
