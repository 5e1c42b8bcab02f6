//! poll(2), select(2), epoll_ctl(2) (uapi/asm-generic/poll.h, uapi/linux/eventpoll.h).

consts! {
    /// Events of poll(2).
    POLL_EVENTS: u16 {
        POLLIN = 0x1;
        POLLPRI = 0x2;
        POLLOUT = 0x4;
        POLLERR = 0x8;
        POLLHUP = 0x10;
        POLLNVAL = 0x20;
        POLLRDNORM = 0x40;
        POLLRDBAND = 0x80;
        POLLWRNORM = 0x100;
        POLLWRBAND = 0x200;
        POLLMSG = 0x400;
        POLLREMOVE = 0x1000;
        POLLRDHUP = 0x2000;
    }
}

consts! {
    /// Events of epoll_ctl(2).
    EPOLL_EVENTS: u32 {
        EPOLLIN = 0x1;
        EPOLLPRI = 0x2;
        EPOLLOUT = 0x4;
        EPOLLERR = 0x8;
        EPOLLHUP = 0x10;
        EPOLLNVAL = 0x20;
        EPOLLRDNORM = 0x40;
        EPOLLRDBAND = 0x80;
        EPOLLWRNORM = 0x100;
        EPOLLWRBAND = 0x200;
        EPOLLMSG = 0x400;
        EPOLLRDHUP = 0x2000;
        EPOLLEXCLUSIVE = 0x10000000;
        EPOLLWAKEUP = 0x20000000;
        EPOLLONESHOT = 0x40000000;
        EPOLLET = 0x80000000;
    }
}

consts! {
    /// Operations of epoll_ctl(2).
    EPOLL_OPS: i32 {
        EPOLL_CTL_ADD = 1;
        EPOLL_CTL_DEL = 2;
        EPOLL_CTL_MOD = 3;
    }
}

consts! {
    /// Flags of epoll_create1(2).
    EPOLL_FLAGS: i32 {
        EPOLL_CLOEXEC = 0o2000000;
    }
}

consts! {
    /// Flags of eventfd(2).
    EFD_FLAGS: i32 {
        EFD_SEMAPHORE = 0o1;
        EFD_NONBLOCK = 0o4000;
        EFD_CLOEXEC = 0o2000000;
    }
}

/// Descriptors in an fd_set of the C library; the kernel takes as many as the first argument says.
pub const FD_SETSIZE: usize = 1024;

pod! {
    /// struct pollfd.
    #[repr(C)]
    pub struct Pollfd [8] {
        pub fd: i32,
        pub events: u16,
        pub revents: u16,
    }

    /// struct epoll_event: packed on x86-64.
    #[repr(C, packed)]
    pub struct EpollEvent [12] {
        pub events: u32,
        pub data: u64,
    }
}
