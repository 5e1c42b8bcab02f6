//! getsockopt(2), socket(7), tcp(7), ip(7), ipv6(7), udp(7).

consts! {
    /// Levels.
    SOCKOPT_LEVELS: i32 {
        SOL_IP = 0;
        SOL_SOCKET = 1;
        SOL_TCP = 6;
        SOL_UDP = 17;
        SOL_IPV6 = 41;
        SOL_ICMPV6 = 58;
        SOL_SCTP = 132;
        SOL_RAW = 255;
        SOL_PACKET = 263;
        SOL_NETLINK = 270;
        SOL_ALG = 279;
        SOL_VSOCK = 287;
        SOL_TLS = 282;
        SOL_MPTCP = 284;
        SOL_BLUETOOTH = 274;
        SOL_TIPC = 271;
        SOL_XDP = 283;
    }
}

consts! {
    /// Options of SOL_SOCKET.
    SOL_SOCKET_OPTIONS: i32 {
        SO_DEBUG = 1;
        SO_REUSEADDR = 2;
        SO_TYPE = 3;
        SO_ERROR = 4;
        SO_DONTROUTE = 5;
        SO_BROADCAST = 6;
        SO_SNDBUF = 7;
        SO_RCVBUF = 8;
        SO_KEEPALIVE = 9;
        SO_OOBINLINE = 10;
        SO_NO_CHECK = 11;
        SO_PRIORITY = 12;
        SO_LINGER = 13;
        SO_BSDCOMPAT = 14;
        SO_REUSEPORT = 15;
        SO_PASSCRED = 16;
        SO_PEERCRED = 17;
        SO_RCVLOWAT = 18;
        SO_SNDLOWAT = 19;
        SO_BINDTODEVICE = 25;
        SO_ATTACH_FILTER = 26;
        SO_DETACH_FILTER = 27;
        SO_PEERNAME = 28;
        SO_ACCEPTCONN = 30;
        SO_PEERSEC = 31;
        SO_SNDBUFFORCE = 32;
        SO_RCVBUFFORCE = 33;
        SO_PASSSEC = 34;
        SO_MARK = 36;
        SO_PROTOCOL = 38;
        SO_DOMAIN = 39;
        SO_RXQ_OVFL = 40;
        SO_WIFI_STATUS = 41;
        SO_PEEK_OFF = 42;
        SO_NOFCS = 43;
        SO_LOCK_FILTER = 44;
        SO_SELECT_ERR_QUEUE = 45;
        SO_BUSY_POLL = 46;
        SO_MAX_PACING_RATE = 47;
        SO_BPF_EXTENSIONS = 48;
        SO_INCOMING_CPU = 49;
        SO_ATTACH_BPF = 50;
        SO_ATTACH_REUSEPORT_CBPF = 51;
        SO_ATTACH_REUSEPORT_EBPF = 52;
        SO_CNX_ADVICE = 53;
        SO_MEMINFO = 55;
        SO_INCOMING_NAPI_ID = 56;
        SO_COOKIE = 57;
        SO_PEERGROUPS = 59;
        SO_ZEROCOPY = 60;
        SO_TXTIME = 61;
        SO_BINDTOIFINDEX = 62;
        SO_TIMESTAMP_NEW = 63;
        SO_TIMESTAMPNS_NEW = 64;
        SO_TIMESTAMPING_NEW = 65;
        SO_RCVTIMEO_NEW = 66;
        SO_SNDTIMEO_NEW = 67;
        SO_DETACH_REUSEPORT_BPF = 68;
        SO_PREFER_BUSY_POLL = 69;
        SO_BUSY_POLL_BUDGET = 70;
        SO_NETNS_COOKIE = 71;
        SO_BUF_LOCK = 72;
        SO_RESERVE_MEM = 73;
        SO_TXREHASH = 74;
        SO_RCVMARK = 75;
        SO_PASSPIDFD = 76;
        SO_PEERPIDFD = 77;
        SO_DEVMEM_DONTNEED = 80;
        SO_RCVPRIORITY = 82;
        SO_PASSRIGHTS = 83;
        SO_INQ = 84;
        SO_TIMESTAMP_OLD = 29;
        SO_TIMESTAMPNS_OLD = 35;
        SO_TIMESTAMPING_OLD = 37;
    }
}

/// The option that x86-64 programs know by this name.
pub const SO_RCVTIMEO: i32 = 20;
/// The option that x86-64 programs know by this name.
pub const SO_SNDTIMEO: i32 = 21;
/// The option that x86-64 programs know by this name.
pub const SO_TIMESTAMP: i32 = SO_TIMESTAMP_OLD;

consts! {
    /// Options of SOL_TCP.
    TCP_OPTIONS: i32 {
        TCP_NODELAY = 1;
        TCP_MAXSEG = 2;
        TCP_CORK = 3;
        TCP_KEEPIDLE = 4;
        TCP_KEEPINTVL = 5;
        TCP_KEEPCNT = 6;
        TCP_SYNCNT = 7;
        TCP_LINGER2 = 8;
        TCP_DEFER_ACCEPT = 9;
        TCP_WINDOW_CLAMP = 10;
        TCP_INFO = 11;
        TCP_QUICKACK = 12;
        TCP_CONGESTION = 13;
        TCP_MD5SIG = 14;
        TCP_THIN_LINEAR_TIMEOUTS = 16;
        TCP_THIN_DUPACK = 17;
        TCP_USER_TIMEOUT = 18;
        TCP_REPAIR = 19;
        TCP_REPAIR_QUEUE = 20;
        TCP_QUEUE_SEQ = 21;
        TCP_REPAIR_OPTIONS = 22;
        TCP_FASTOPEN = 23;
        TCP_TIMESTAMP = 24;
        TCP_NOTSENT_LOWAT = 25;
        TCP_CC_INFO = 26;
        TCP_SAVE_SYN = 27;
        TCP_SAVED_SYN = 28;
        TCP_REPAIR_WINDOW = 29;
        TCP_FASTOPEN_CONNECT = 30;
        TCP_ULP = 31;
        TCP_MD5SIG_EXT = 32;
        TCP_FASTOPEN_KEY = 33;
        TCP_FASTOPEN_NO_COOKIE = 34;
        TCP_ZEROCOPY_RECEIVE = 35;
        TCP_INQ = 36;
        TCP_TX_DELAY = 37;
        TCP_AO_ADD_KEY = 38;
        TCP_AO_DEL_KEY = 39;
        TCP_AO_INFO = 40;
        TCP_AO_GET_KEYS = 41;
        TCP_AO_REPAIR = 42;
        TCP_IS_MPTCP = 43;
        TCP_RTO_MAX_MS = 44;
        TCP_RTO_MIN_US = 45;
        TCP_DELACK_MAX_US = 46;
    }
}

consts! {
    /// Options of SOL_IP.
    IPV4_OPTIONS: i32 {
        IP_TOS = 1;
        IP_TTL = 2;
        IP_HDRINCL = 3;
        IP_OPTIONS = 4;
        IP_ROUTER_ALERT = 5;
        IP_RECVOPTS = 6;
        IP_RETOPTS = 7;
        IP_PKTINFO = 8;
        IP_PKTOPTIONS = 9;
        IP_MTU_DISCOVER = 10;
        IP_RECVERR = 11;
        IP_RECVTTL = 12;
        IP_RECVTOS = 13;
        IP_MTU = 14;
        IP_FREEBIND = 15;
        IP_IPSEC_POLICY = 16;
        IP_XFRM_POLICY = 17;
        IP_PASSSEC = 18;
        IP_TRANSPARENT = 19;
        IP_RECVORIGDSTADDR = 20;
        IP_MINTTL = 21;
        IP_NODEFRAG = 22;
        IP_CHECKSUM = 23;
        IP_BIND_ADDRESS_NO_PORT = 24;
        IP_RECVFRAGSIZE = 25;
        IP_RECVERR_RFC4884 = 26;
        IP_MULTICAST_IF = 32;
        IP_MULTICAST_TTL = 33;
        IP_MULTICAST_LOOP = 34;
        IP_ADD_MEMBERSHIP = 35;
        IP_DROP_MEMBERSHIP = 36;
        IP_UNBLOCK_SOURCE = 37;
        IP_BLOCK_SOURCE = 38;
        IP_ADD_SOURCE_MEMBERSHIP = 39;
        IP_DROP_SOURCE_MEMBERSHIP = 40;
        IP_MSFILTER = 41;
        MCAST_JOIN_GROUP = 42;
        MCAST_BLOCK_SOURCE = 43;
        MCAST_UNBLOCK_SOURCE = 44;
        MCAST_LEAVE_GROUP = 45;
        MCAST_JOIN_SOURCE_GROUP = 46;
        MCAST_LEAVE_SOURCE_GROUP = 47;
        MCAST_MSFILTER = 48;
        IP_MULTICAST_ALL = 49;
        IP_UNICAST_IF = 50;
        IP_LOCAL_PORT_RANGE = 51;
        IP_PROTOCOL = 52;
    }
}

consts! {
    /// Options of SOL_IPV6.
    IPV6_OPTIONS: i32 {
        IPV6_ADDRFORM = 1;
        IPV6_2292PKTINFO = 2;
        IPV6_2292HOPOPTS = 3;
        IPV6_2292DSTOPTS = 4;
        IPV6_2292RTHDR = 5;
        IPV6_2292PKTOPTIONS = 6;
        IPV6_CHECKSUM = 7;
        IPV6_2292HOPLIMIT = 8;
        IPV6_NEXTHOP = 9;
        IPV6_AUTHHDR = 10;
        IPV6_FLOWINFO = 11;
        IPV6_UNICAST_HOPS = 16;
        IPV6_MULTICAST_IF = 17;
        IPV6_MULTICAST_HOPS = 18;
        IPV6_MULTICAST_LOOP = 19;
        IPV6_ADD_MEMBERSHIP = 20;
        IPV6_DROP_MEMBERSHIP = 21;
        IPV6_ROUTER_ALERT = 22;
        IPV6_MTU_DISCOVER = 23;
        IPV6_MTU = 24;
        IPV6_RECVERR = 25;
        IPV6_V6ONLY = 26;
        IPV6_JOIN_ANYCAST = 27;
        IPV6_LEAVE_ANYCAST = 28;
        IPV6_MULTICAST_ALL = 29;
        IPV6_ROUTER_ALERT_ISOLATE = 30;
        IPV6_RECVERR_RFC4884 = 31;
        IPV6_FLOWLABEL_MGR = 32;
        IPV6_FLOWINFO_SEND = 33;
        IPV6_IPSEC_POLICY = 34;
        IPV6_XFRM_POLICY = 35;
        IPV6_HDRINCL = 36;
        IPV6_RECVPKTINFO = 49;
        IPV6_PKTINFO = 50;
        IPV6_RECVHOPLIMIT = 51;
        IPV6_HOPLIMIT = 52;
        IPV6_RECVHOPOPTS = 53;
        IPV6_HOPOPTS = 54;
        IPV6_RTHDRDSTOPTS = 55;
        IPV6_RECVRTHDR = 56;
        IPV6_RTHDR = 57;
        IPV6_RECVDSTOPTS = 58;
        IPV6_DSTOPTS = 59;
        IPV6_RECVPATHMTU = 60;
        IPV6_PATHMTU = 61;
        IPV6_DONTFRAG = 62;
        IPV6_RECVTCLASS = 66;
        IPV6_TCLASS = 67;
        IPV6_AUTOFLOWLABEL = 70;
        IPV6_ADDR_PREFERENCES = 72;
        IPV6_MINHOPCOUNT = 73;
        IPV6_ORIGDSTADDR = 74;
        IPV6_TRANSPARENT = 75;
        IPV6_UNICAST_IF = 76;
        IPV6_RECVFRAGSIZE = 77;
        IPV6_FREEBIND = 78;
    }
}

consts! {
    /// Options of SOL_UDP.
    UDP_OPTIONS: i32 {
        UDP_CORK = 1;
        UDP_ENCAP = 100;
        UDP_NO_CHECK6_TX = 101;
        UDP_NO_CHECK6_RX = 102;
        UDP_SEGMENT = 103;
        UDP_GRO = 104;
    }
}

consts! {
    /// Options of SOL_NETLINK.
    NETLINK_OPTIONS: i32 {
        NETLINK_ADD_MEMBERSHIP = 1;
        NETLINK_DROP_MEMBERSHIP = 2;
        NETLINK_PKTINFO = 3;
        NETLINK_BROADCAST_ERROR = 4;
        NETLINK_NO_ENOBUFS = 5;
        NETLINK_LISTEN_ALL_NSID = 8;
        NETLINK_LIST_MEMBERSHIPS = 9;
        NETLINK_CAP_ACK = 10;
        NETLINK_EXT_ACK = 11;
        NETLINK_GET_STRICT_CHK = 12;
    }
}
