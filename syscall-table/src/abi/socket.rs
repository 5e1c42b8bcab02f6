//! socket(2), send(2), recv(2), shutdown(2), ip(7), ipv6(7), unix(7), netlink(7), cmsg(3).

consts! {
    /// Address families.
    ADDRESS_FAMILIES: i32 {
        AF_UNSPEC = 0;
        AF_UNIX = 1;
        AF_INET = 2;
        AF_AX25 = 3;
        AF_IPX = 4;
        AF_APPLETALK = 5;
        AF_NETROM = 6;
        AF_BRIDGE = 7;
        AF_ATMPVC = 8;
        AF_X25 = 9;
        AF_INET6 = 10;
        AF_ROSE = 11;
        AF_DECNET = 12;
        AF_NETBEUI = 13;
        AF_SECURITY = 14;
        AF_KEY = 15;
        AF_NETLINK = 16;
        AF_PACKET = 17;
        AF_ASH = 18;
        AF_ECONET = 19;
        AF_ATMSVC = 20;
        AF_RDS = 21;
        AF_SNA = 22;
        AF_IRDA = 23;
        AF_PPPOX = 24;
        AF_WANPIPE = 25;
        AF_LLC = 26;
        AF_CAN = 29;
        AF_TIPC = 30;
        AF_BLUETOOTH = 31;
        AF_IUCV = 32;
        AF_RXRPC = 33;
        AF_ISDN = 34;
        AF_PHONET = 35;
        AF_IEEE802154 = 36;
        AF_CAIF = 37;
        AF_ALG = 38;
        AF_NFC = 39;
        AF_VSOCK = 40;
        AF_KCM = 41;
        AF_QIPCRTR = 42;
        AF_SMC = 43;
        AF_XDP = 44;
        AF_MCTP = 45;
    }
}

consts! {
    /// Socket types.
    SOCKET_TYPES: i32 {
        SOCK_STREAM = 1;
        SOCK_DGRAM = 2;
        SOCK_RAW = 3;
        SOCK_RDM = 4;
        SOCK_SEQPACKET = 5;
        SOCK_DCCP = 6;
        SOCK_PACKET = 10;
    }
}

consts! {
    /// Flags beside the socket type.
    SOCKET_FLAGS: i32 {
        SOCK_NONBLOCK = 0o4000;
        SOCK_CLOEXEC = 0o2000000;
    }
}

consts! {
    /// Protocols of AF_INET and AF_INET6.
    IP_PROTOCOLS: i32 {
        IPPROTO_IP = 0;
        IPPROTO_ICMP = 1;
        IPPROTO_IGMP = 2;
        IPPROTO_IPIP = 4;
        IPPROTO_TCP = 6;
        IPPROTO_EGP = 8;
        IPPROTO_PUP = 12;
        IPPROTO_UDP = 17;
        IPPROTO_IDP = 22;
        IPPROTO_DCCP = 33;
        IPPROTO_IPV6 = 41;
        IPPROTO_RSVP = 46;
        IPPROTO_GRE = 47;
        IPPROTO_ESP = 50;
        IPPROTO_AH = 51;
        IPPROTO_ICMPV6 = 58;
        IPPROTO_SCTP = 132;
        IPPROTO_UDPLITE = 136;
        IPPROTO_MPLS = 137;
        IPPROTO_RAW = 255;
        IPPROTO_MPTCP = 262;
    }
}

consts! {
    /// Protocols of AF_NETLINK.
    NETLINK_PROTOCOLS: i32 {
        NETLINK_ROUTE = 0;
        NETLINK_USERSOCK = 2;
        NETLINK_FIREWALL = 3;
        NETLINK_SOCK_DIAG = 4;
        NETLINK_NFLOG = 5;
        NETLINK_XFRM = 6;
        NETLINK_SELINUX = 7;
        NETLINK_ISCSI = 8;
        NETLINK_AUDIT = 9;
        NETLINK_FIB_LOOKUP = 10;
        NETLINK_CONNECTOR = 11;
        NETLINK_NETFILTER = 12;
        NETLINK_IP6_FW = 13;
        NETLINK_DNRTMSG = 14;
        NETLINK_KOBJECT_UEVENT = 15;
        NETLINK_GENERIC = 16;
        NETLINK_SCSITRANSPORT = 18;
        NETLINK_ECRYPTFS = 19;
        NETLINK_RDMA = 20;
        NETLINK_CRYPTO = 21;
        NETLINK_SMC = 22;
    }
}

consts! {
    /// Flags of send(2) and recv(2).
    MSG_FLAGS: i32 {
        MSG_OOB = 0x1;
        MSG_PEEK = 0x2;
        MSG_DONTROUTE = 0x4;
        MSG_CTRUNC = 0x8;
        MSG_PROXY = 0x10;
        MSG_TRUNC = 0x20;
        MSG_DONTWAIT = 0x40;
        MSG_EOR = 0x80;
        MSG_WAITALL = 0x100;
        MSG_FIN = 0x200;
        MSG_SYN = 0x400;
        MSG_CONFIRM = 0x800;
        MSG_RST = 0x1000;
        MSG_ERRQUEUE = 0x2000;
        MSG_NOSIGNAL = 0x4000;
        MSG_MORE = 0x8000;
        MSG_WAITFORONE = 0x10000;
        MSG_BATCH = 0x40000;
        MSG_ZEROCOPY = 0x4000000;
        MSG_FASTOPEN = 0x20000000;
        MSG_CMSG_CLOEXEC = 0x40000000;
    }
}

consts! {
    /// How of shutdown(2).
    SHUTDOWN: i32 {
        SHUT_RD = 0;
        SHUT_WR = 1;
        SHUT_RDWR = 2;
    }
}

consts! {
    /// Control messages of SOL_SOCKET.
    SCM_TYPES: i32 {
        SCM_RIGHTS = 1;
        SCM_CREDENTIALS = 2;
        SCM_SECURITY = 3;
        SCM_PIDFD = 4;
    }
}

/// Largest backlog of listen(2), and the kernel's default somaxconn.
pub const SOMAXCONN: i32 = 4096;

pod! {
    /// struct sockaddr_storage: the largest address.
    #[repr(C)]
    pub struct SockaddrStorage [128] {
        pub ss_family: u16,
        pub __data: [u8; 126],
    }

    /// struct sockaddr_un.
    #[repr(C)]
    pub struct SockaddrUn [110] {
        pub sun_family: u16,
        pub sun_path: [u8; 108],
    }

    /// struct sockaddr_in; port and address in network order.
    #[repr(C)]
    pub struct SockaddrIn [16] {
        pub sin_family: u16,
        pub sin_port: [u8; 2],
        pub sin_addr: [u8; 4],
        pub sin_zero: [u8; 8],
    }

    /// struct sockaddr_in6; port and address in network order.
    #[repr(C)]
    pub struct SockaddrIn6 [28] {
        pub sin6_family: u16,
        pub sin6_port: [u8; 2],
        pub sin6_flowinfo: [u8; 4],
        pub sin6_addr: [u8; 16],
        pub sin6_scope_id: u32,
    }

    /// struct sockaddr_nl.
    #[repr(C)]
    pub struct SockaddrNl [12] {
        pub nl_family: u16,
        pub nl_pad: u16,
        pub nl_pid: u32,
        pub nl_groups: u32,
    }

    /// struct user_msghdr.
    #[repr(C)]
    pub struct Msghdr [56] {
        pub msg_name: u64,
        pub msg_namelen: i32,
        pub __pad0: u32,
        pub msg_iov: u64,
        pub msg_iovlen: u64,
        pub msg_control: u64,
        pub msg_controllen: u64,
        pub msg_flags: i32,
        pub __pad1: u32,
    }

    /// struct mmsghdr.
    #[repr(C)]
    pub struct Mmsghdr [64] {
        pub msg_hdr: Msghdr,
        pub msg_len: u32,
        pub __pad: u32,
    }

    /// struct cmsghdr; the data follows, and the next header begins at a multiple of 8.
    #[repr(C)]
    pub struct Cmsghdr [16] {
        pub cmsg_len: u64,
        pub cmsg_level: i32,
        pub cmsg_type: i32,
    }

    /// struct ucred.
    #[repr(C)]
    pub struct Ucred [12] {
        pub pid: i32,
        pub uid: u32,
        pub gid: u32,
    }

    /// struct linger.
    #[repr(C)]
    pub struct Linger [8] {
        pub l_onoff: i32,
        pub l_linger: i32,
    }

    /// struct nlmsghdr.
    #[repr(C)]
    pub struct Nlmsghdr [16] {
        pub nlmsg_len: u32,
        pub nlmsg_type: u16,
        pub nlmsg_flags: u16,
        pub nlmsg_seq: u32,
        pub nlmsg_pid: u32,
    }
}
