//! ioctl(2), ioctl_tty(2), termios(3) (uapi/asm-generic/ioctls.h, termbits.h, sockios.h).

consts! {
    /// Requests of ioctl_tty(2).
    TTY_IOCTLS: u32 {
        TCGETS = 0x5401;
        TCSETS = 0x5402;
        TCSETSW = 0x5403;
        TCSETSF = 0x5404;
        TCGETA = 0x5405;
        TCSETA = 0x5406;
        TCSETAW = 0x5407;
        TCSETAF = 0x5408;
        TCSBRK = 0x5409;
        TCXONC = 0x540a;
        TCFLSH = 0x540b;
        TIOCEXCL = 0x540c;
        TIOCNXCL = 0x540d;
        TIOCSCTTY = 0x540e;
        TIOCGPGRP = 0x540f;
        TIOCSPGRP = 0x5410;
        TIOCOUTQ = 0x5411;
        TIOCSTI = 0x5412;
        TIOCGWINSZ = 0x5413;
        TIOCSWINSZ = 0x5414;
        TIOCMGET = 0x5415;
        TIOCMBIS = 0x5416;
        TIOCMBIC = 0x5417;
        TIOCMSET = 0x5418;
        TIOCGSOFTCAR = 0x5419;
        TIOCSSOFTCAR = 0x541a;
        TIOCLINUX = 0x541c;
        TIOCCONS = 0x541d;
        TIOCGSERIAL = 0x541e;
        TIOCSSERIAL = 0x541f;
        TIOCPKT = 0x5420;
        TIOCNOTTY = 0x5422;
        TIOCSETD = 0x5423;
        TIOCGETD = 0x5424;
        TCSBRKP = 0x5425;
        TIOCSBRK = 0x5427;
        TIOCCBRK = 0x5428;
        TIOCGSID = 0x5429;
        TIOCGRS485 = 0x542e;
        TIOCSRS485 = 0x542f;
        TCGETX = 0x5432;
        TCSETX = 0x5433;
        TCSETXF = 0x5434;
        TCSETXW = 0x5435;
        TIOCVHANGUP = 0x5437;
        TIOCGPTPEER = 0x5441;
        TIOCSERCONFIG = 0x5453;
        TIOCSERGWILD = 0x5454;
        TIOCSERSWILD = 0x5455;
        TIOCGLCKTRMIOS = 0x5456;
        TIOCSLCKTRMIOS = 0x5457;
        TIOCSERGSTRUCT = 0x5458;
        TIOCSERGETLSR = 0x5459;
        TIOCSERGETMULTI = 0x545a;
        TIOCSERSETMULTI = 0x545b;
        TIOCMIWAIT = 0x545c;
        TIOCGICOUNT = 0x545d;
        TIOCSPTLCK = 0x40045431;
        TIOCSIG = 0x40045436;
        TCSETS2 = 0x402c542b;
        TCSETSW2 = 0x402c542c;
        TCSETSF2 = 0x402c542d;
        TIOCGPTN = 0x80045430;
        TIOCGDEV = 0x80045432;
        TIOCGPKT = 0x80045438;
        TIOCGPTLCK = 0x80045439;
        TIOCGEXCL = 0x80045440;
        TCGETS2 = 0x802c542a;
    }
}

consts! {
    /// Requests that any descriptor or file may take.
    FILE_IOCTLS: u32 {
        FIONREAD = 0x541b;
        FIONBIO = 0x5421;
        FIOASYNC = 0x5452;
        FIOCLEX = 0x5451;
        FIONCLEX = 0x5450;
        FIOQSIZE = 0x5460;
        FIGETBSZ = 0x2;
        FIBMAP = 0x1;
        FIFREEZE = 0xc0045877;
        FITHAW = 0xc0045878;
        FITRIM = 0xc0185879;
        FICLONE = 0x40049409;
        FICLONERANGE = 0x4020940d;
        FIDEDUPERANGE = 0xc0189436;
        FS_IOC_GETFLAGS = 0x80086601;
        FS_IOC_SETFLAGS = 0x40086602;
        FS_IOC_GETVERSION = 0x80087601;
        FS_IOC_SETVERSION = 0x40087602;
        FS_IOC_FIEMAP = 0xc020660b;
        FS_IOC_FSGETXATTR = 0x801c581f;
        FS_IOC_FSSETXATTR = 0x401c5820;
        FS_IOC_GETFSLABEL = 0x81009431;
        FS_IOC_SETFSLABEL = 0x41009432;
    }
}

consts! {
    /// Requests of sockets.
    SOCKET_IOCTLS: u32 {
        SIOCSIFATMTCP = 0x6180;
        SIOCMKCLIP = 0x61e0;
        FIOSETOWN = 0x8901;
        SIOCSPGRP = 0x8902;
        FIOGETOWN = 0x8903;
        SIOCGPGRP = 0x8904;
        SIOCATMARK = 0x8905;
        SIOCGSTAMP = 0x8906;
        SIOCADDRT = 0x890b;
        SIOCDELRT = 0x890c;
        SIOCRTMSG = 0x890d;
        SIOCGIFNAME = 0x8910;
        SIOCSIFLINK = 0x8911;
        SIOCGIFCONF = 0x8912;
        SIOCGIFFLAGS = 0x8913;
        SIOCSIFFLAGS = 0x8914;
        SIOCGIFADDR = 0x8915;
        SIOCSIFADDR = 0x8916;
        SIOCGIFDSTADDR = 0x8917;
        SIOCSIFDSTADDR = 0x8918;
        SIOCGIFBRDADDR = 0x8919;
        SIOCSIFBRDADDR = 0x891a;
        SIOCGIFNETMASK = 0x891b;
        SIOCSIFNETMASK = 0x891c;
        SIOCGIFMETRIC = 0x891d;
        SIOCSIFMETRIC = 0x891e;
        SIOCGIFMEM = 0x891f;
        SIOCSIFMEM = 0x8920;
        SIOCGIFMTU = 0x8921;
        SIOCSIFMTU = 0x8922;
        SIOCSIFNAME = 0x8923;
        SIOCSIFHWADDR = 0x8924;
        SIOCGIFENCAP = 0x8925;
        SIOCSIFENCAP = 0x8926;
        SIOCGIFHWADDR = 0x8927;
        SIOCGIFSLAVE = 0x8929;
        SIOCSIFSLAVE = 0x8930;
        SIOCADDMULTI = 0x8931;
        SIOCDELMULTI = 0x8932;
        SIOCGIFINDEX = 0x8933;
        SIOCSIFPFLAGS = 0x8934;
        SIOCGIFPFLAGS = 0x8935;
        SIOCDIFADDR = 0x8936;
        SIOCSIFHWBROADCAST = 0x8937;
        SIOCGIFCOUNT = 0x8938;
        SIOCGIFBR = 0x8940;
        SIOCSIFBR = 0x8941;
        SIOCGIFTXQLEN = 0x8942;
        SIOCSIFTXQLEN = 0x8943;
        SIOCDARP = 0x8953;
        SIOCGARP = 0x8954;
        SIOCSARP = 0x8955;
        SIOCDRARP = 0x8960;
        SIOCGRARP = 0x8961;
        SIOCSRARP = 0x8962;
        SIOCGIFMAP = 0x8970;
        SIOCSIFMAP = 0x8971;
        SIOCADDDLCI = 0x8980;
        SIOCDELDLCI = 0x8981;
        SIOCPROTOPRIVATE = 0x89e0;
        SIOCDEVPRIVATE = 0x89f0;
    }
}

consts! {
    /// Bits of `c_iflag`.
    C_IFLAG: u32 {
        IGNBRK = 0o1;
        BRKINT = 0o2;
        IGNPAR = 0o4;
        PARMRK = 0o10;
        INPCK = 0o20;
        ISTRIP = 0o40;
        INLCR = 0o100;
        IGNCR = 0o200;
        ICRNL = 0o400;
        IUCLC = 0o1000;
        IXON = 0o2000;
        IXANY = 0o4000;
        IXOFF = 0o10000;
        IMAXBEL = 0o20000;
        IUTF8 = 0o40000;
    }
}

consts! {
    /// Bits of `c_oflag`.
    C_OFLAG: u32 {
        OPOST = 0o1;
        OLCUC = 0o2;
        ONLCR = 0o4;
        OCRNL = 0o10;
        ONOCR = 0o20;
        ONLRET = 0o40;
        OFILL = 0o100;
        OFDEL = 0o200;
    }
}

consts! {
    /// Bits of `c_cflag`.
    C_CFLAG: u32 {
        CBAUD = 0o10017;
        CSIZE = 0o60;
        CS5 = 0o0;
        CS6 = 0o20;
        CS7 = 0o40;
        CS8 = 0o60;
        CSTOPB = 0o100;
        CREAD = 0o200;
        PARENB = 0o400;
        PARODD = 0o1000;
        HUPCL = 0o2000;
        CLOCAL = 0o4000;
        CBAUDEX = 0o10000;
        CRTSCTS = 0o20000000000;
        B0 = 0o0;
        B9600 = 0o15;
        B19200 = 0o16;
        B38400 = 0o17;
        B115200 = 0o10002;
    }
}

consts! {
    /// Bits of `c_lflag`.
    C_LFLAG: u32 {
        ISIG = 0o1;
        ICANON = 0o2;
        XCASE = 0o4;
        ECHO = 0o10;
        ECHOE = 0o20;
        ECHOK = 0o40;
        ECHONL = 0o100;
        NOFLSH = 0o200;
        TOSTOP = 0o400;
        ECHOCTL = 0o1000;
        ECHOPRT = 0o2000;
        ECHOKE = 0o4000;
        FLUSHO = 0o10000;
        PENDIN = 0o40000;
        IEXTEN = 0o100000;
        EXTPROC = 0o200000;
    }
}

consts! {
    /// Places in `c_cc`.
    C_CC: usize {
        VINTR = 0;
        VQUIT = 1;
        VERASE = 2;
        VKILL = 3;
        VEOF = 4;
        VTIME = 5;
        VMIN = 6;
        VSWTC = 7;
        VSTART = 8;
        VSTOP = 9;
        VSUSP = 10;
        VEOL = 11;
        VREPRINT = 12;
        VDISCARD = 13;
        VWERASE = 14;
        VLNEXT = 15;
        VEOL2 = 16;
    }
}

consts! {
    /// Arguments of TCFLSH.
    TCFLUSH: u64 {
        TCIFLUSH = 0;
        TCOFLUSH = 1;
        TCIOFLUSH = 2;
    }
}

consts! {
    /// Arguments of TCXONC.
    TCXONC_ACTIONS: u64 {
        TCOOFF = 0;
        TCOON = 1;
        TCIOFF = 2;
        TCION = 3;
    }
}

consts! {
    /// First byte of a read from a pseudo-terminal in packet mode.
    TIOCPKT_BITS: u8 {
        TIOCPKT_DATA = 0;
        TIOCPKT_FLUSHREAD = 1;
        TIOCPKT_FLUSHWRITE = 2;
        TIOCPKT_STOP = 4;
        TIOCPKT_START = 8;
        TIOCPKT_NOSTOP = 16;
        TIOCPKT_DOSTOP = 32;
        TIOCPKT_IOCTL = 64;
    }
}

/// Field of `c_oflag`: what becomes of tabs.
pub const TABDLY: u32 = 0o14000;
/// Value of [`TABDLY`]: expanded to spaces.
pub const XTABS: u32 = 0o14000;
/// Field of `c_cflag`: the input speed is this far above the output speed's place.
pub const IBSHIFT: u32 = 16;
/// Value of CBAUD: the speed is in `c_ospeed`.
pub const BOTHER: u32 = CBAUDEX;
/// Character that stands for "none" in `c_cc`, and for an end of file in the input.
pub const DISABLED_CHAR: u8 = 0;

/// Number of control characters in [`Termios`].
pub const NCCS: usize = 19;

pod! {
    /// struct termios of the kernel.
    #[repr(C)]
    pub struct Termios [36] {
        pub c_iflag: u32,
        pub c_oflag: u32,
        pub c_cflag: u32,
        pub c_lflag: u32,
        pub c_line: u8,
        pub c_cc: [u8; 19],
    }

    /// struct termios2.
    #[repr(C)]
    pub struct Termios2 [44] {
        pub c_iflag: u32,
        pub c_oflag: u32,
        pub c_cflag: u32,
        pub c_lflag: u32,
        pub c_line: u8,
        pub c_cc: [u8; 19],
        pub c_ispeed: u32,
        pub c_ospeed: u32,
    }

    /// struct termio.
    #[repr(C)]
    pub struct Termio [18] {
        pub c_iflag: u16,
        pub c_oflag: u16,
        pub c_cflag: u16,
        pub c_lflag: u16,
        pub c_line: u8,
        pub c_cc: [u8; 8],
        pub __pad: u8,
    }

    /// struct winsize.
    #[repr(C)]
    pub struct Winsize [8] {
        pub ws_row: u16,
        pub ws_col: u16,
        pub ws_xpixel: u16,
        pub ws_ypixel: u16,
    }
}
