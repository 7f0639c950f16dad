//! Ports that are free on loopback.
//!
//! kube-apiserver takes a port only by its number. One that the system hands out could be taken by
//! any connection before the server listens; so they are looked for below those that it hands out.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// The lowest that is tried, and how many.
const FIRST: u32 = 10_000;
const COUNT: u32 = 20_000;

/// How many this process has tried: none is tried twice.
static TRIED: AtomicU32 = AtomicU32::new(0);

/// A port on which nobody listens.
#[must_use]
pub fn free() -> u16 {
    loop {
        let tried = TRIED.fetch_add(1, Ordering::Relaxed);
        // Processes that run side by side begin far from each other.
        let start = std::process::id().wrapping_mul(7_919);
        let port = FIRST + start.wrapping_add(tried) % COUNT;
        let Ok(port) = u16::try_from(port) else { continue };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
