//! inotify(7), fanotify_init(2), fanotify_mark(2).

consts! {
    /// Events and flags of inotify_add_watch(2).
    INOTIFY_MASK: u32 {
        IN_ACCESS = 0x1;
        IN_MODIFY = 0x2;
        IN_ATTRIB = 0x4;
        IN_CLOSE_WRITE = 0x8;
        IN_CLOSE_NOWRITE = 0x10;
        IN_OPEN = 0x20;
        IN_MOVED_FROM = 0x40;
        IN_MOVED_TO = 0x80;
        IN_CREATE = 0x100;
        IN_DELETE = 0x200;
        IN_DELETE_SELF = 0x400;
        IN_MOVE_SELF = 0x800;
        IN_UNMOUNT = 0x2000;
        IN_Q_OVERFLOW = 0x4000;
        IN_IGNORED = 0x8000;
        IN_ONLYDIR = 0x1000000;
        IN_DONT_FOLLOW = 0x2000000;
        IN_EXCL_UNLINK = 0x4000000;
        IN_MASK_CREATE = 0x10000000;
        IN_MASK_ADD = 0x20000000;
        IN_ISDIR = 0x40000000;
        IN_ONESHOT = 0x80000000;
    }
}

consts! {
    /// Flags of inotify_init1(2).
    INOTIFY_FLAGS: i32 {
        IN_NONBLOCK = 0o4000;
        IN_CLOEXEC = 0o2000000;
    }
}

consts! {
    /// Events of fanotify_mark(2).
    FANOTIFY_MASK: u64 {
        FAN_ACCESS = 0x1;
        FAN_MODIFY = 0x2;
        FAN_ATTRIB = 0x4;
        FAN_CLOSE_WRITE = 0x8;
        FAN_CLOSE_NOWRITE = 0x10;
        FAN_OPEN = 0x20;
        FAN_MOVED_FROM = 0x40;
        FAN_MOVED_TO = 0x80;
        FAN_CREATE = 0x100;
        FAN_DELETE = 0x200;
        FAN_DELETE_SELF = 0x400;
        FAN_MOVE_SELF = 0x800;
        FAN_OPEN_EXEC = 0x1000;
        FAN_Q_OVERFLOW = 0x4000;
        FAN_FS_ERROR = 0x8000;
        FAN_OPEN_PERM = 0x10000;
        FAN_ACCESS_PERM = 0x20000;
        FAN_OPEN_EXEC_PERM = 0x40000;
        FAN_EVENT_ON_CHILD = 0x8000000;
        FAN_RENAME = 0x10000000;
        FAN_ONDIR = 0x40000000;
    }
}

consts! {
    /// Flags of fanotify_init(2).
    FANOTIFY_INIT_FLAGS: u32 {
        FAN_CLOEXEC = 0x1;
        FAN_NONBLOCK = 0x2;
        FAN_CLASS_CONTENT = 0x4;
        FAN_CLASS_PRE_CONTENT = 0x8;
        FAN_UNLIMITED_QUEUE = 0x10;
        FAN_UNLIMITED_MARKS = 0x20;
        FAN_ENABLE_AUDIT = 0x40;
        FAN_REPORT_PIDFD = 0x80;
        FAN_REPORT_TID = 0x100;
        FAN_REPORT_FID = 0x200;
        FAN_REPORT_DIR_FID = 0x400;
        FAN_REPORT_NAME = 0x800;
        FAN_REPORT_TARGET_FID = 0x1000;
    }
}

consts! {
    /// Flags of fanotify_mark(2).
    FANOTIFY_MARK_FLAGS: u32 {
        FAN_MARK_ADD = 0x1;
        FAN_MARK_REMOVE = 0x2;
        FAN_MARK_DONT_FOLLOW = 0x4;
        FAN_MARK_ONLYDIR = 0x8;
        FAN_MARK_MOUNT = 0x10;
        FAN_MARK_IGNORED_MASK = 0x20;
        FAN_MARK_IGNORED_SURV_MODIFY = 0x40;
        FAN_MARK_FLUSH = 0x80;
        FAN_MARK_FILESYSTEM = 0x100;
        FAN_MARK_EVICTABLE = 0x200;
        FAN_MARK_IGNORE = 0x400;
    }
}

pod! {
    /// The fixed part of struct inotify_event; `len` bytes of name follow.
    #[repr(C)]
    pub struct InotifyEvent [16] {
        pub wd: i32,
        pub mask: u32,
        pub cookie: u32,
        pub len: u32,
    }
}
