//! A range of addresses: `10.0.0.0/8`, `::1`. Pure.

use std::net::IpAddr;
use std::str::FromStr;

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    pub fn contains(&self, address: IpAddr) -> bool {
        // an IPv4 client of a socket that takes both
        let address = address.to_canonical();
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => same(own.to_bits().into(), other.to_bits().into(), 32, self.bits),
            (IpAddr::V6(own), IpAddr::V6(other)) => same(own.to_bits(), other.to_bits(), 128, self.bits),
            _ => false,
        }
    }
}

/// Are the first `bits` of two addresses of this length the same?
fn same(a: u128, b: u128, length: u32, bits: u32) -> bool {
    bits == 0 || (a ^ b) >> (length - bits) == 0
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let wrong = || "write an address or a range, as in 10.0.0.0/8, 127.0.0.1 or fd00::/8".to_owned();
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| wrong()))?;
        if bits > most { Err(wrong()) } else { Ok(Network { address, bits }) }
    }
}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn a_range_has_what_is_in_it_and_nothing_else() {
        let has = |range: &str, address: &str| range.parse::<Network>().unwrap().contains(address.parse().unwrap());
        assert!(has("10.0.0.0/8", "10.255.1.2") && !has("10.0.0.0/8", "11.0.0.1"));
        assert!(has("127.0.0.1", "127.0.0.1") && !has("127.0.0.1", "127.0.0.2"));
        assert!(has("127.0.0.1", "::ffff:127.0.0.1"), "a socket that takes both says it so");
        assert!(has("0.0.0.0/0", "1.2.3.4") && !has("0.0.0.0/0", "::1"));
        assert!(has("fd00::/8", "fdff::1") && !has("fd00::/8", "fe80::1"));
        assert!(has("::/0", "::1"));
        for wrong in ["", "10.0.0.0/33", "x", "10.0.0/8", "::/129", "10.0.0.0/-1", "10.0.0.0/"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
