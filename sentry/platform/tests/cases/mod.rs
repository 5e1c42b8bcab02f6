//! What every platform must do. Included by one test program for each platform.

mod calls;
mod state;
