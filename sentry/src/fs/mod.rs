//! File systems.

pub mod gofer;
pub mod hostfile;
pub mod memfs;
