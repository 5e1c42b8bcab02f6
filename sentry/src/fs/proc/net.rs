//! /proc/net: one interface, lo, and tables without entries.

use super::system::{Names, named};
use crate::kernel::Kernel;
use std::sync::Arc;

const DEV: &str = "Inter-|   Receive                                                |  Transmit\n \
face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0\n";
const TCP: &str =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
const TCP6: &str = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
const UDP: &str = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops";
const UDP6: &str = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n";
const ROUTE: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT";
const SOCKSTAT: &str = "sockets: used 0\nTCP: inuse 0 orphan 0 tw 0 alloc 0 mem 0\nUDP: inuse 0 mem 0\nUDPLITE: inuse 0\nRAW: inuse 0\nFRAG: inuse 0 memory 0\n";
const SOCKSTAT6: &str =
    "TCP6: inuse 0\nUDP6: inuse 0\nUDPLITE6: inuse 0\nRAW6: inuse 0\nFRAG6: inuse 0 memory 0\n";

/// The files.
pub(super) fn files(_: &Arc<Kernel>) -> Names {
    // Lines are padded to this width by Linux.
    let padded = |line: &str, width: usize| format!("{line:<width$}\n");
    let fixed: Vec<(&'static [u8], String)> = vec![
        (b"dev", DEV.into()),
        (b"tcp", padded(TCP, 149)),
        (b"tcp6", TCP6.into()),
        (b"udp", padded(UDP, 127)),
        (b"udp6", UDP6.into()),
        (b"raw", padded(UDP, 127)),
        (b"raw6", UDP6.into()),
        (b"unix", "Num       RefCount Protocol Flags    Type St Inode Path\n".into()),
        (b"route", padded(ROUTE, 127)),
        (b"ipv6_route", String::new()),
        (b"if_inet6", "00000000000000000000000000000001 01 80 10 80       lo\n".into()),
        (b"arp", "IP address       HW type     Flags       HW address            Mask     Device\n".into()),
        (
            b"netlink",
            "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n"
                .into(),
        ),
        (b"packet", "sk       RefCnt Type Proto  Iface R Rmem   User   Inode\n".into()),
        (b"sockstat", SOCKSTAT.into()),
        (b"sockstat6", SOCKSTAT6.into()),
        (b"igmp", "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n".into()),
        (b"wireless", String::new()),
    ];
    fixed.into_iter().map(|(name, text)| named(b"net", name, text)).collect()
}
