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
