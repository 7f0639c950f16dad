//! IP addresses and networks (CIDR): no zones, and no IPv4 address in the dress of IPv6.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::signatures::{Function, IpTest};
use super::{NO_OVERLOAD, Outcome, failed};
use crate::error::EvalErrorKind;
use crate::value::Value;

pub(crate) fn call<'a>(function: Function, args: &[Value<'a>]) -> Outcome<'a> {
    match (function, args) {
        (Function::Ip, [Value::Str(text)]) => address(text).map(Value::Ip),
        (Function::Ip, [Value::Cidr(network, _)]) => Ok(Value::Ip(*network)),
        (Function::IsIp, [Value::Str(text)]) => Ok(Value::Bool(address(text).is_ok())),
        (Function::IsCanonical, [Value::Str(text)]) => {
            Ok(Value::Bool(address(text)?.to_string() == **text))
        }
        (Function::Family, [Value::Ip(ip)]) => Ok(Value::Int(if ip.is_ipv4() { 4 } else { 6 })),
        (Function::IpTest(test), [Value::Ip(ip)]) => Ok(Value::Bool(passes(test, *ip))),
        (Function::Cidr, [Value::Str(text)]) => network(text),
        (Function::IsCidr, [Value::Str(text)]) => Ok(Value::Bool(prefix(text).is_ok())),
        (Function::ContainsIp, [Value::Cidr(net, bits), other]) => {
            let ip = match other {
                Value::Ip(ip) => *ip,
                Value::Str(text) => address(text).map_err(|_| NO_OVERLOAD)?,
                _ => return Err(NO_OVERLOAD),
            };
            Ok(Value::Bool(contains(*net, *bits, ip)))
        }
        (Function::ContainsCidr, [Value::Cidr(net, bits), other]) => {
            let (inner, length) = match other {
                Value::Cidr(inner, length) => (*inner, *length),
                Value::Str(text) => prefix(text).map_err(|_| NO_OVERLOAD)?,
                _ => return Err(NO_OVERLOAD),
            };
            Ok(Value::Bool(*bits <= length && contains(*net, *bits, inner)))
        }
        (Function::PrefixLength, [Value::Cidr(_, bits)]) => Ok(Value::Int(i64::from(*bits))),
        (Function::Masked, [Value::Cidr(net, bits)]) => Ok(Value::Cidr(masked(*net, *bits), *bits)),
        _ => Err(NO_OVERLOAD),
    }
}

/// An address by its text.
fn address(text: &str) -> Result<IpAddr, EvalErrorKind> {
    if let Some((before, zone)) = text.split_once('%')
        && !zone.is_empty()
        && before.parse::<Ipv6Addr>().is_ok()
    {
        return failed(format!("IP address {text:?} with zone value is not allowed"));
    }
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) if ip.to_ipv4_mapped().is_some() => {
            failed(format!("IPv4-mapped IPv6 address {text:?} is not allowed"))
        }
        Ok(ip) => Ok(ip),
        Err(_) => failed(format!(
            "IP Address {text:?} parse error during conversion from string: it is no IP address"
        )),
    }
}

/// A network by its text: an address, a slash, and a number of bits.
fn prefix(text: &str) -> Result<(IpAddr, u8), EvalErrorKind> {
    let what = "network address parse error during conversion from string";
    let Some((ip, bits)) = text.rsplit_once('/') else {
        return failed(format!("{what}: {text:?} has no '/'"));
    };
    let Ok(ip) = ip.parse::<IpAddr>() else {
        return failed(format!("{what}: {ip:?} is no IP address"));
    };
    let longest = if ip.is_ipv4() { 32 } else { 128 };
    let plain = bits.len() == 1 || !bits.starts_with(['0', '+']);
    let Some(bits) = bits.parse::<u8>().ok().filter(|bits| plain && *bits <= longest) else {
        return failed(format!("{what}: {text:?} has no length from 0 to {longest} after its '/'"));
    };
    match ip {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            failed(format!("IPv4-mapped IPv6 address {text:?} is not allowed"))
        }
        ip => Ok((ip, bits)),
    }
}

fn network<'a>(text: &str) -> Outcome<'a> {
    match prefix(text) {
        Ok((ip, bits)) => Ok(Value::Cidr(ip, bits)),
        Err(error) => failed(format!(
            "network address parse error during conversion from string: {}",
            message(error)
        )),
    }
}

fn message(error: EvalErrorKind) -> String {
    crate::error::EvalError { kind: error, range: (0, 0) }.to_string()
}

fn masked(ip: IpAddr, bits: u8) -> IpAddr {
    match ip {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            Ipv4Addr::from(u32::from(v4) & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            Ipv6Addr::from(u128::from(v6) & mask).into()
        }
    }
}

fn contains(net: IpAddr, bits: u8, ip: IpAddr) -> bool {
    net.is_ipv4() == ip.is_ipv4() && masked(net, bits) == masked(ip, bits)
}

fn passes(test: IpTest, ip: IpAddr) -> bool {
    let link_local = |ip: IpAddr| match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    };
    match test {
        IpTest::Unspecified => ip.is_unspecified(),
        IpTest::Loopback => ip.is_loopback(),
        IpTest::LinkLocalMulticast => match ip {
            IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
            IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
        },
        IpTest::LinkLocalUnicast => link_local(ip),
        IpTest::GlobalUnicast => {
            let special = ip.is_unspecified()
                || ip.is_loopback()
                || ip.is_multicast()
                || link_local(ip)
                || ip == IpAddr::V4(Ipv4Addr::BROADCAST);
            !special
        }
    }
}

/// Bytes of an address, as the cost of looking at it goes.
pub(crate) fn bytes(ip: IpAddr) -> u64 {
    if ip.is_ipv4() { 4 } else { 16 }
}
