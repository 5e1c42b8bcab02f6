//! mount(2), umount2(2), renameat2(2), setxattr(2), open_tree(2), move_mount(2), fsopen(2), mount_setattr(2).

consts! {
    /// Flags of mount(2).
    MOUNT_FLAGS: u64 {
        MS_RDONLY = 0x1;
        MS_NOSUID = 0x2;
        MS_NODEV = 0x4;
        MS_NOEXEC = 0x8;
        MS_SYNCHRONOUS = 0x10;
        MS_REMOUNT = 0x20;
        MS_MANDLOCK = 0x40;
        MS_DIRSYNC = 0x80;
        MS_NOSYMFOLLOW = 0x100;
        MS_NOATIME = 0x400;
        MS_NODIRATIME = 0x800;
        MS_BIND = 0x1000;
        MS_MOVE = 0x2000;
        MS_REC = 0x4000;
        MS_SILENT = 0x8000;
        MS_POSIXACL = 0x10000;
        MS_UNBINDABLE = 0x20000;
        MS_PRIVATE = 0x40000;
        MS_SLAVE = 0x80000;
        MS_SHARED = 0x100000;
        MS_RELATIME = 0x200000;
        MS_KERNMOUNT = 0x400000;
        MS_I_VERSION = 0x800000;
        MS_STRICTATIME = 0x1000000;
        MS_LAZYTIME = 0x2000000;
    }
}

consts! {
    /// Flags of umount2(2).
    UMOUNT_FLAGS: i32 {
        MNT_FORCE = 1;
        MNT_DETACH = 2;
        MNT_EXPIRE = 4;
        UMOUNT_NOFOLLOW = 8;
    }
}

consts! {
    /// Flags of renameat2(2).
    RENAME_FLAGS: u32 {
        RENAME_NOREPLACE = 1;
        RENAME_EXCHANGE = 2;
        RENAME_WHITEOUT = 4;
    }
}

consts! {
    /// Flags of setxattr(2).
    XATTR_FLAGS: i32 {
        XATTR_CREATE = 1;
        XATTR_REPLACE = 2;
    }
}

consts! {
    /// Flags of move_mount(2).
    MOVE_MOUNT_FLAGS: u32 {
        MOVE_MOUNT_F_SYMLINKS = 0x1;
        MOVE_MOUNT_F_AUTOMOUNTS = 0x2;
        MOVE_MOUNT_F_EMPTY_PATH = 0x4;
        MOVE_MOUNT_T_SYMLINKS = 0x10;
        MOVE_MOUNT_T_AUTOMOUNTS = 0x20;
        MOVE_MOUNT_T_EMPTY_PATH = 0x40;
        MOVE_MOUNT_SET_GROUP = 0x100;
        MOVE_MOUNT_BENEATH = 0x200;
    }
}

consts! {
    /// Flags of open_tree(2), beside AT_ flags.
    OPEN_TREE_FLAGS: u32 {
        OPEN_TREE_CLONE = 0x1;
        OPEN_TREE_CLOEXEC = 0x80000;
    }
}

consts! {
    /// Commands of fsconfig(2).
    FSCONFIG_CMDS: u32 {
        FSCONFIG_SET_FLAG = 0;
        FSCONFIG_SET_STRING = 1;
        FSCONFIG_SET_BINARY = 2;
        FSCONFIG_SET_PATH = 3;
        FSCONFIG_SET_PATH_EMPTY = 4;
        FSCONFIG_SET_FD = 5;
        FSCONFIG_CMD_CREATE = 6;
        FSCONFIG_CMD_RECONFIGURE = 7;
        FSCONFIG_CMD_CREATE_EXCL = 8;
    }
}

/// Longest name of an extended attribute.
pub const XATTR_NAME_MAX: usize = 255;
/// Largest value of an extended attribute.
pub const XATTR_SIZE_MAX: usize = 65536;
/// Largest list of extended attribute names.
pub const XATTR_LIST_MAX: usize = 65536;
/// Longest path, its NUL included.
pub const PATH_MAX: usize = 4096;
/// Longest name of a directory entry, without NUL.
pub const NAME_MAX: usize = 255;

pod! {
    /// struct mount_attr.
    #[repr(C)]
    pub struct MountAttr [32] {
        pub attr_set: u64,
        pub attr_clr: u64,
        pub propagation: u64,
        pub userns_fd: u64,
    }

    /// struct xattr_args.
    #[repr(C)]
    pub struct XattrArgs [16] {
        pub value: u64,
        pub size: u32,
        pub flags: u32,
    }

    /// struct file_attr.
    #[repr(C)]
    pub struct FileAttr [24] {
        pub fa_xflags: u64,
        pub fa_extsize: u32,
        pub fa_nextents: u32,
        pub fa_projid: u32,
        pub fa_cowextsize: u32,
    }
}
