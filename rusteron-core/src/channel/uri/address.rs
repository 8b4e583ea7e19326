//! Addresses of endpoints and interfaces, taken apart as in Aeron's C code.
//!
//! The driver checks the rest: only a name server or the machine knows whether a host or an
//! interface exists.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::channel::uri::scan;

/// `AERON_MAX_HOST_LENGTH`, `AERON_MAX_PORT_LENGTH` and `AERON_MAX_PREFIX_LENGTH`, with C's
/// terminator.
const MAX_HOST_LENGTH: usize = 384;
const MAX_PORT_LENGTH: usize = 8;
const MAX_PREFIX_LENGTH: usize = 8;

/// `IF_NAMESIZE` on Linux and macOS. On Windows, Aeron's own value.
const MAX_INTERFACE_NAME_LENGTH: usize = 16;

type Reason = &'static str;

/// The address that a channel sends to or receives from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address<'a> {
    host: Host<'a>,
    pub(super) port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Host<'a> {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    /// A name for the driver to resolve.
    Name(&'a str),
}

impl<'a> Address<'a> {
    /// Mirrors `aeron_address_split` and `aeron_name_resolver_resolve_host_and_port`.
    pub(super) fn parse(text: &'a str) -> Result<Self, Reason> {
        let brackets = Brackets::find(text)?;
        let Some(colon) = brackets.port_colon(text) else {
            return Err("the port is missing: host:port");
        };
        let port = required_port(&text[colon + 1..])?;
        Ok(Self { host: brackets.host(&text[..colon])?, port })
    }

    /// Returns whether the address is a multicast group's. A name may resolve to such an address,
    /// which is not known here.
    pub(super) fn is_multicast(&self) -> bool {
        match self.host {
            Host::V4(address) => address.is_multicast(),
            Host::V6(address) => address.is_multicast(),
            Host::Name(_) => false,
        }
    }

    /// Returns whether the address is certainly no multicast group's.
    pub(super) fn is_unicast(&self) -> bool {
        !self.is_multicast() && !matches!(self.host, Host::Name(name) if name != "localhost")
    }

    /// Returns whether the last byte is odd, so that the control address can follow.
    pub(super) fn is_odd(&self) -> bool {
        let last = match self.host {
            Host::V4(address) => address.octets()[3],
            Host::V6(address) => address.octets()[15],
            Host::Name(_) => 1,
        };
        last % 2 == 1
    }
}

/// Returns whether C parses this without copying a text of negative length, which crashes the
/// driver.
///
/// The lengths mirror `aeron_address_split`, and `aeron_interface_split` for an interface.
pub fn is_safe_for_c(text: &str, is_interface: bool) -> bool {
    let last = |c: char| text.rfind(c);
    let (opening, closing) = (last('['), last(']'));
    let is_v6 = opening > Some(0) || closing > Some(0);
    if is_interface && text.starts_with('{') || is_v6 && (opening.is_none() || closing < opening) {
        // The text is a name in braces, or has brackets that C refuses.
        return true;
    }
    let slash = last('/').filter(|_| is_interface);
    let port_colon = last(':').filter(|&colon| Some(colon) > closing);
    if let (Some(colon), Some(slash)) = (port_colon, slash) {
        if 0 < slash && slash < colon + 1 && colon + 1 < text.len() {
            return false;
        }
    }
    let scope = last('%').filter(|&scope| Some(scope) < closing);
    let end = scope.or(port_colon).or(slash).unwrap_or(text.len());
    let least = match (is_v6, scope) {
        (false, _) => 0,
        (true, Some(_)) => 1,
        (true, None) => 2,
    };
    end >= least
}

/// Checks an interface. Mirrors `aeron_interface_parse_and_resolve` and
/// `aeron_parse_named_interface`.
pub(super) fn check_interface(text: &str) -> Result<(), Reason> {
    if text.starts_with('{') { named_interface(text) } else { interface_address(text) }
}

fn named_interface(text: &str) -> Result<(), Reason> {
    let close = text.rfind('}').ok_or("the closing brace is missing: {name}")?;
    let (name, rest) = (&text[1..close], &text[close + 1..]);
    if name.is_empty() {
        return Err("the interface's name is empty");
    }
    if name.len() >= MAX_INTERFACE_NAME_LENGTH {
        return Err("the interface's name is longer than 15 bytes");
    }
    match rest.strip_prefix(':') {
        Some(port) if port.len() > 5 => Err("the port is not an integer from 0 to 65535"),
        Some(port) => required_port(port).map(|_| ()),
        None if rest.is_empty() => Ok(()),
        None => Err("only a port can follow the name: {name}:port"),
    }
}

fn interface_address(text: &str) -> Result<(), Reason> {
    let brackets = Brackets::find(text)?;
    let slash = text.rfind('/');
    let colon = brackets.port_colon(text);
    if let Some(colon) = colon {
        // C copies from the port to the slash, and crashes if the slash comes first.
        if slash.is_some_and(|slash| slash < colon) {
            return Err("the prefix has to follow the port: host:port/prefix");
        }
        if colon + 1 == text.len() {
            return Err("the port is missing after the colon");
        }
        let port = &text[colon + 1..slash.unwrap_or(text.len())];
        if !port.is_empty() {
            required_port(port)?;
        }
    }
    let host = brackets.host(&text[..colon.or(slash).unwrap_or(text.len())])?;
    // For an interface, the brackets decide the address family. For an endpoint, they do not.
    let longest = match (host, brackets.closing) {
        (Host::V4(_), Some(_)) => return Err("an IPv4 address is written without brackets"),
        (Host::V6(_), None) => return Err("an IPv6 address is written in brackets"),
        (_, Some(_)) => 128,
        (_, None) => 32,
    };
    slash.map_or(Ok(()), |slash| check_prefix(&text[slash + 1..], longest))
}

/// Mirrors `aeron_prefixlen_resolver`. A missing prefix counts as the longest.
fn check_prefix(prefix: &str, longest: u64) -> Result<(), Reason> {
    const INVALID: Reason = "the prefix is not an integer from 0 to 32, or to 128 for IPv6";
    if prefix.is_empty() {
        return Ok(());
    }
    if prefix.len() + 1 >= MAX_PREFIX_LENGTH {
        return Err(INVALID);
    }
    match scan::unsigned_prefix(prefix, 0) {
        Some(length) if length <= longest => Ok(()),
        _ => Err(INVALID),
    }
}

/// Mirrors `aeron_udp_port_resolver`, which also accepts hexadecimal and octal numbers.
fn required_port(port: &str) -> Result<u16, Reason> {
    const INVALID: Reason = "the port is not an integer from 0 to 65535";
    if port.is_empty() {
        return Err("the port is missing: host:port");
    }
    if port.len() >= MAX_PORT_LENGTH {
        return Err(INVALID);
    }
    scan::unsigned_prefix(port, 0).and_then(|port| u16::try_from(port).ok()).ok_or(INVALID)
}

/// The positions of the brackets around an IPv6 address, if there are any.
#[derive(Clone, Copy)]
struct Brackets {
    closing: Option<usize>,
}

impl Brackets {
    /// Finds the brackets. C uses the last bracket of each kind, and takes the host from the second
    /// character on. C ignores the text before the brackets, so there must be none.
    fn find(text: &str) -> Result<Self, Reason> {
        const INVALID: Reason = "the brackets do not enclose an address: [address]";
        match (text.rfind('['), text.rfind(']')) {
            (None, None) => Ok(Self { closing: None }),
            (Some(0), Some(closing)) => Ok(Self { closing: Some(closing) }),
            _ => Err(INVALID),
        }
    }

    /// Returns the position of the last colon, unless that colon is part of the address in
    /// brackets.
    fn port_colon(self, text: &str) -> Option<usize> {
        text.rfind(':').filter(|&colon| self.closing.is_none_or(|closing| closing < colon))
    }

    /// Parses the address or the name in the text before the port and the prefix.
    fn host(self, text: &str) -> Result<Host<'_>, Reason> {
        let host = match self.closing {
            Some(closing) if closing + 1 != text.len() => {
                return Err("only a port or a prefix can follow the brackets");
            }
            Some(closing) => &text[1..closing],
            None => text,
        };
        // The scope, after a percent sign, is not part of the address. Names have no scope.
        let host = match host.rsplit_once('%') {
            Some((address, _)) if self.closing.is_some() || address.contains(':') => address,
            _ => host,
        };
        if host.is_empty() {
            return Err("the host is missing");
        }
        if host.len() >= MAX_HOST_LENGTH {
            return Err("the host is longer than 383 bytes");
        }
        let host = match (host.parse(), host.parse()) {
            (Ok(address), _) => Host::V4(address),
            (_, Ok(address)) => Host::V6(address),
            _ if host.contains(':') => return Err("not an address, nor a name"),
            _ => Host::Name(host),
        };
        Ok(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_taken_apart() {
        let loopback = Host::V4(Ipv4Addr::LOCALHOST);
        let cases = [
            ("127.0.0.1:40123", Ok(Address { host: loopback, port: 40123 })),
            ("127.0.0.1:0x10", Ok(Address { host: loopback, port: 16 })),
            ("localhost:0", Ok(Address { host: Host::Name("localhost"), port: 0 })),
            ("[::1]:7", Ok(Address { host: Host::V6(Ipv6Addr::LOCALHOST), port: 7 })),
            ("[::1%lo]:7", Ok(Address { host: Host::V6(Ipv6Addr::LOCALHOST), port: 7 })),
            ("::1:7", Ok(Address { host: Host::V6(Ipv6Addr::LOCALHOST), port: 7 })),
            ("::1%lo:7", Ok(Address { host: Host::V6(Ipv6Addr::LOCALHOST), port: 7 })),
            ("[127.0.0.1]:7", Ok(Address { host: loopback, port: 7 })),
            ("[localhost]:7", Ok(Address { host: Host::Name("localhost"), port: 7 })),
        ];
        for (text, address) in cases {
            assert_eq!(Address::parse(text), address, "{text}");
        }
        #[rustfmt::skip]
        let texts = [
            "localhost", "localhost:", "localhost:x", "localhost:65536", "localhost:-1", ":1", "",
            "zz::1:7", "[::1]", "[::1]:", "[::1]x:7", "[::1:7", "::1]:7", "x[::1]:7", "%[::1]:7",
            "[]:7", "[zz::]:7", "localhost:00000001",
        ];
        for text in texts {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_crashes_c_is_known() {
        for text in ["%[::1]:80", "%]", "%[::1]"] {
            assert_eq!(is_safe_for_c(text, false), text == "%]", "{text}");
        }
        for text in ["127.0.0.1/24:80", "[::1]/64:80", "%[::1]", "/[::1]", "x/[:y]:80"] {
            assert!(!is_safe_for_c(text, true), "{text}");
        }
        for text in ["127.0.0.1:80/24", "127.0.0.1/24", "[::1%lo]:80/64", "{lo/x:y", "x[::1]", ""] {
            assert!(is_safe_for_c(text, true), "{text}");
        }
    }

    #[test]
    fn interfaces_are_taken_apart() {
        #[rustfmt::skip]
        let texts = [
            "localhost", "127.0.0.1", "127.0.0.1/24", "127.0.0.1:0/24", "127.0.0.1:/24", "{lo}",
            "127.0.0.1/", "[::1]", "[::1]/128", "[::1]:0/64", "[::1%lo]/64", "{lo}:0",
        ];
        for text in texts {
            assert_eq!(check_interface(text), Ok(()), "{text}");
        }
        #[rustfmt::skip]
        let texts = [
            "127.0.0.1/33", "127.0.0.1/x", "127.0.0.1/24:80", "127.0.0.1:", "[::1]/129", "::1",
            "::1/128", "[127.0.0.1]", "{}", "{lo", "{lo}x", "{lo}:", "{lo}:65536",
            "{an-interface-name}", "[::1", "127.0.0.1:x/24", "/24",
        ];
        for text in texts {
            assert!(check_interface(text).is_err(), "{text}");
        }
    }
}
