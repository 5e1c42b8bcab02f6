//! Credentials.

/// Credentials of a task: replaced whole, never changed in place.
#[derive(Debug, Clone)]
pub struct Creds {}
