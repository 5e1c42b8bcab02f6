//! /proc/net: one interface, lo, and the sockets (proc_pid_net(5)).

use super::system::{Names, named};
use super::text;
use crate::fs::pseudo::ino;
use crate::net::listing::{self, LISTEN, Row};
use crate::net::{Net, iface, netlink};
use crate::task::Task;
use crate::task::userns::UserNs;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use syscall_table::abi::*;

const DEV: &str = "Inter-|   Receive                                                |  Transmit\n \
face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0\n";
const TCP: &str =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
const TCP6: &str = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
const UDP: &str = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops";
const UDP6: &str = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n";
const ROUTE: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT";
const UNIX: &str = "Num       RefCount Protocol Flags    Type St Inode Path\n";
/// Widths that Linux pads the lines of IPv4 to.
const TCP_WIDTH: usize = 149;
const UDP_WIDTH: usize = 127;
/// A kernel address, as a reader without privilege sees it (kptr_restrict).
const POINTER: &str = "0000000000000000";
/// Socket states of AF_UNIX (include/uapi/linux/net.h).
const SS_UNCONNECTED: u8 = 1;
const SS_CONNECTED: u8 = 3;
/// Flag of a listening socket (include/linux/net.h).
const SO_ACCEPTCON: u32 = 1 << 16;

/// Counters of /proc/net/snmp (RFC 1213's names): nothing is counted in memory.
const SNMP: [(&str, &str); 5] = [
    (
        "Ip",
        "Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams InUnknownProtos InDiscards InDelivers OutRequests OutDiscards OutNoRoutes ReasmTimeout ReasmReqds ReasmOKs ReasmFails FragOKs FragFails FragCreates OutTransmits",
    ),
    (
        "Icmp",
        "InMsgs InErrors InCsumErrors InDestUnreachs InTimeExcds InParmProbs InSrcQuenchs InRedirects InEchos InEchoReps InTimestamps InTimestampReps InAddrMasks InAddrMaskReps OutMsgs OutErrors OutRateLimitGlobal OutRateLimitHost OutDestUnreachs OutTimeExcds OutParmProbs OutSrcQuenchs OutRedirects OutEchos OutEchoReps OutTimestamps OutTimestampReps OutAddrMasks OutAddrMaskReps",
    ),
    (
        "Tcp",
        "RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors",
    ),
    (
        "Udp",
        "InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors",
    ),
    (
        "UdpLite",
        "InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors",
    ),
];

/// A group of counters, all 0 but for what is fixed.
fn counters(group: &str, names: &str) -> String {
    let value = |name: &str| match (group, name) {
        ("Ip", "Forwarding") => "2",
        ("Ip", "DefaultTTL") => "64",
        ("Tcp", "RtoAlgorithm") => "1",
        ("Tcp", "RtoMin") => "200",
        ("Tcp", "RtoMax") => "120000",
        ("Tcp", "MaxConn") => "-1",
        _ => "0",
    };
    let values: Vec<&str> = names.split(' ').map(value).collect();
    format!("{group}: {names}\n{group}: {}\n", values.join(" "))
}

/// Users are shown as the reader's namespace names them.
type Make = fn(&Net, &UserNs) -> Vec<u8>;

/// An address as these tables have it: 32-bit words in the machine's order, and the port.
fn address(family: i32, at: &SocketAddr) -> String {
    let octets = listing::octets(family, at.ip());
    let words = if family == AF_INET { 1 } else { 4 };
    let mut out = String::new();
    for word in octets.chunks_exact(4).take(words) {
        let _ = word.iter().rev().try_for_each(|byte| write!(out, "{byte:02X}"));
    }
    let _ = write!(out, ":{:04X}", at.port());
    out
}

/// What the lines of TCP and UDP share.
fn entry(slot: String, row: &Row, reader: &UserNs) -> String {
    let (local, remote) = (address(row.family, &row.local), address(row.family, &row.remote));
    format!(
        "{slot}: {local} {remote} {:02X} 00000000:{:08X} 00:00000000 00000000 {:5} {:8} {} 2 {POINTER}",
        row.state,
        row.received,
        reader.user(row.uid),
        0,
        row.ino
    )
}

fn table(net: &Net, reader: &UserNs, (family, protocol): (i32, i32), heading: &str) -> Vec<u8> {
    let tcp = protocol == IPPROTO_TCP;
    let width = match (family, tcp) {
        (AF_INET, true) => TCP_WIDTH,
        (AF_INET, false) => UDP_WIDTH,
        _ => 0,
    };
    let mut out = format!("{:<width$}\n", heading.trim_end());
    for (slot, row) in listing::rows(net, family, protocol).iter().enumerate() {
        let line = match (tcp, row.state) {
            (true, LISTEN) => entry(format!("{slot:4}"), row, reader) + " 100 0 0 10 0",
            (true, _) => entry(format!("{slot:4}"), row, reader) + " 20 4 30 10 -1",
            (false, _) => entry(format!("{slot:5}"), row, reader) + " 0",
        };
        let _ = writeln!(out, "{line:<width$}");
    }
    out.into_bytes()
}

/// Names are any bytes.
fn unix(net: &Net) -> Vec<u8> {
    let mut out = Vec::from(UNIX);
    for row in listing::rows(net, AF_UNIX, 0) {
        let (flags, state) = match row.state {
            LISTEN => (SO_ACCEPTCON, SS_UNCONNECTED),
            listing::ESTABLISHED => (0, SS_CONNECTED),
            _ => (0, SS_UNCONNECTED),
        };
        let line =
            format!("{POINTER}: 00000002 00000000 {flags:08X} {:04X} {state:02X} {:5}", row.kind, row.ino);
        out.extend(line.into_bytes());
        if let Some(name) = row.unix_name() {
            let hidden = if name.first() == Some(&0) { b'@' } else { 0 };
            out.push(b' ');
            out.extend(name.iter().map(|byte| if *byte == 0 { hidden } else { *byte }));
        }
        out.push(b'\n');
    }
    out
}

/// Sockets of a family and protocol.
fn count(net: &Net, family: i32, protocol: i32) -> usize {
    listing::rows(net, family, protocol).len()
}

fn sockstat(net: &Net) -> String {
    let used = net.sockets().len();
    let (tcp, udp) = (count(net, AF_INET, IPPROTO_TCP), count(net, AF_INET, IPPROTO_UDP));
    format!(
        "sockets: used {used}\nTCP: inuse {tcp} orphan 0 tw 0 alloc {tcp} mem 0\nUDP: inuse {udp} mem 0\nUDPLITE: inuse 0\nRAW: inuse 0\nFRAG: inuse 0 memory 0\n"
    )
}

fn sockstat6(net: &Net) -> String {
    let (tcp, udp) = (count(net, AF_INET6, IPPROTO_TCP), count(net, AF_INET6, IPPROTO_UDP));
    format!(
        "TCP6: inuse {tcp}\nUDP6: inuse {udp}\nUDPLITE6: inuse 0\nRAW6: inuse 0\nFRAG6: inuse 0 memory 0\n"
    )
}

/// The kernel's own sockets, which answer, and the guests'.
fn netlink(net: &Net) -> String {
    let mut out = String::from(
        "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n",
    );
    let mut rows = netlink::shown(net);
    for (ino, protocol) in [(1, NETLINK_ROUTE), (2, NETLINK_SOCK_DIAG)] {
        let at = rows.iter().position(|row| row.protocol >= protocol).unwrap_or(rows.len());
        let (port, groups, received, lists, drops) = (0, 0, 0, false, 0);
        rows.insert(at, netlink::Shown { protocol, port, groups, received, lists, drops, ino });
    }
    for row in rows {
        let _ = writeln!(
            out,
            "{POINTER} {:<3} {:<10} {:08x} {:<8} {:<8} {:<5} {:<8} {:<8} {:<8}",
            row.protocol,
            row.port,
            row.groups,
            row.received,
            0,
            u8::from(row.lists),
            2,
            row.drops,
            row.ino
        );
    }
    out
}

/// Protocols that sockets have: name, bytes of a socket, whether its memory is counted and by how much, bytes of headers, and which
/// calls it has.
const PROTOCOLS: [(&str, u32, Option<u32>, &str, &str); 11] = [
    ("PINGv6", 1344, None, "yes", "yyynnynnyyyyyynyyn"),
    ("UDPLITEv6", 1472, Some(0), "yes", "yyynyyynyyyynnyyyn"),
    ("UDPv6", 1472, Some(0), "yes", "yyynyyynyyyynnyyyn"),
    ("TCPv6", 2432, Some(192), "yes", "yyyyyyyyyyyynyyyyy"),
    ("UNIX-STREAM", 1152, None, "yes", "ynnnnnnnnnnnnnnnnn"),
    ("UNIX", 1152, None, "yes", "ynnnnnnnnnnnnnnnnn"),
    ("UDP-Lite", 1344, Some(0), "yes", "yyynyyynyyyynnyyyn"),
    ("PING", 1016, None, "yes", "yyynnynnyyyyyynyyn"),
    ("UDP", 1344, Some(0), "yes", "yyynyyynyyyynnyyyn"),
    ("TCP", 2304, Some(192), "yes", "yyyyyyyyyyyynyyyyy"),
    ("NETLINK", 1096, None, "no", "nnnnnnnnnnnnnnnnnn"),
];

fn protocols(net: &Net) -> String {
    let mut out = String::from(
        "protocol  size sockets  memory press maxhdr  slab module     cl co di ac io in de sh ss gs se re bi br ha uh gp em\n",
    );
    let sockets = net.sockets();
    for (name, size, counted, slab, calls) in PROTOCOLS {
        // Those of IP count from when they have a port.
        let count = sockets.iter().filter(|s| s.protocol_name() == name && s.row().is_some()).count();
        let (memory, press) = if counted.is_some() { ("0", "no") } else { ("-1", "NI") };
        let head = counted.unwrap_or(0);
        let _ = write!(
            out,
            "{name:<9} {size:>4} {count:>6}  {memory:>6}   {press:<3} {head:>6}   {slab:<3}  {:<10}",
            "kernel"
        );
        let _ = calls.chars().try_for_each(|call| write!(out, " {call:>2}"));
        out.push('\n');
    }
    out
}

/// Addresses of IPv6: address, index, bits of the network, scope, flags, name.
fn if_inet6(net: &Net) -> String {
    let mut out = String::new();
    for address in &net.lo().addresses {
        let std::net::IpAddr::V6(ip) = address.ip else { continue };
        let _ = ip.octets().iter().try_for_each(|byte| write!(out, "{byte:02x}"));
        // The scope as the address has it (net/ipv6.h).
        let scope = match address.scope {
            254 => 0x10,
            253 => 0x20,
            _ => 0,
        };
        let _ = writeln!(out, " {:02x} {:02x} {scope:02x} 80       lo", iface::INDEX, address.prefix);
    }
    out
}

/// Multicast groups of IPv4, those of the machine last.
fn igmp(net: &Net) -> String {
    let mut out = String::from("Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n");
    if !net.lo().used {
        return out;
    }
    let groups = net.groups(true);
    let _ = writeln!(out, "1\tlo        : {:5}      V3", groups.len().saturating_add(1));
    let all = [(std::net::IpAddr::from([224, 0, 0, 1]), 1)];
    for (group, users) in groups.iter().chain(&all) {
        let std::net::IpAddr::V4(ip) = group else { continue };
        let _ = writeln!(out, "\t\t\t\t{:08X} {users:5} 0:00000000\t\t0", u32::from_le_bytes(ip.octets()));
    }
    out
}

/// Multicast groups of IPv6.
fn igmp6(net: &Net) -> String {
    let mut out = String::new();
    if !net.lo().up {
        return out;
    }
    let all = ["ff02::1", "ff01::1"].map(|ip| (ip.parse().unwrap_or(std::net::IpAddr::V6(0.into())), 1));
    for (group, users) in net.groups(false).iter().chain(&all) {
        let std::net::IpAddr::V6(ip) = group else { continue };
        let _ = write!(out, "{:<4} {:<15} ", iface::INDEX, "lo");
        let _ = ip.octets().iter().try_for_each(|byte| write!(out, "{byte:02x}"));
        let _ = writeln!(out, " {users:5} 0000000C 0");
    }
    out
}

/// The files.
pub(super) fn files(of: &Arc<Net>) -> Names {
    let padded = |line: &str, width: usize| format!("{line:<width$}\n");
    let fixed: Vec<(&'static [u8], String)> = vec![
        (b"dev", DEV.into()),
        (b"raw", padded(UDP, UDP_WIDTH)),
        (b"raw6", UDP6.into()),
        (b"route", padded(ROUTE, 127)),
        (b"ipv6_route", String::new()),
        (b"arp", "IP address       HW type     Flags       HW address            Mask     Device\n".into()),
        (b"packet", "sk       RefCnt Type Proto  Iface R Rmem   User   Inode\n".into()),
        (b"wireless", String::new()),
        (b"snmp", SNMP.iter().map(|(group, names)| counters(group, names)).collect()),
        (b"netstat", counters("TcpExt", "SyncookiesSent") + &counters("IpExt", "InOctets OutOctets")),
        (b"dev_mcast", String::new()),
        (b"icmp", padded(UDP, UDP_WIDTH)),
        (b"icmp6", UDP6.into()),
        (b"udplite", padded(UDP, UDP_WIDTH)),
        (b"udplite6", UDP6.into()),
    ];
    let live: [(&'static [u8], Make); 12] = [
        (b"netlink", |net, _| netlink(net).into_bytes()),
        (b"protocols", |net, _| protocols(net).into_bytes()),
        (b"tcp", |net, reader| table(net, reader, (AF_INET, IPPROTO_TCP), TCP)),
        (b"tcp6", |net, reader| table(net, reader, (AF_INET6, IPPROTO_TCP), TCP6)),
        (b"udp", |net, reader| table(net, reader, (AF_INET, IPPROTO_UDP), UDP)),
        (b"udp6", |net, reader| table(net, reader, (AF_INET6, IPPROTO_UDP), UDP6)),
        (b"unix", |net, _| unix(net)),
        (b"if_inet6", |net, _| if_inet6(net).into_bytes()),
        (b"igmp", |net, _| igmp(net).into_bytes()),
        (b"igmp6", |net, _| igmp6(net).into_bytes()),
        (b"sockstat", |net, _| sockstat(net).into_bytes()),
        (b"sockstat6", |net, _| sockstat6(net).into_bytes()),
    ];
    let live = live.map(|(name, make)| {
        let net = of.clone();
        (name, text(ino(&[b"net", name]), 0o444, (0, 0), move |task: &Task| Ok(make(&net, &task.creds().ns))))
    });
    fixed.into_iter().map(|(name, text)| named(b"net", name, text)).chain(live).collect()
}
