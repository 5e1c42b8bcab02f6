//! Address spaces: what is mapped where. The pages themselves are the host's business (see the platform).

use crate::sync::{Level, Lock};
use platform::Space;
use std::sync::Arc;

/// One guest address space.
pub struct Mm {
    /// Its host side.
    pub space: Arc<dyn Space>,
    /// Areas, break, accounting. Held across the host calls that change the space.
    pub layout: Lock<Layout>,
}

/// Areas and break.
#[derive(Default)]
pub struct Layout {}

impl Mm {
    /// An empty space.
    pub fn new(space: Arc<dyn Space>) -> Arc<Mm> {
        Arc::new(Mm { space, layout: Lock::new(Level::Mm, Layout::default()) })
    }
}
