//! Checks. Each fails by a panic that carries the caller's place.

use std::ffi::CStr;
use std::fmt::Debug;
use std::sync::Mutex;

/// The payload of a case that cannot run here.
pub struct Skip(pub String);

/// Leaves the case: it cannot run here, for `why`.
pub fn skip(why: &str) -> ! {
    std::panic::panic_any(Skip(why.to_string()))
}

/// The errno's own name.
pub fn errname(e: i64) -> String {
    unsafe extern "C" {
        fn strerrorname_np(e: i32) -> *const libc::c_char;
    }
    let p = unsafe { strerrorname_np(e as i32) };
    if p.is_null() {
        format!("errno {e}")
    } else {
        unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned()
    }
}

fn show(r: i64) -> String {
    if (-4095..0).contains(&r) { format!("-{}", errname(-r)) } else { r.to_string() }
}

/// The call succeeded; its value.
#[track_caller]
pub fn ok(r: i64) -> i64 {
    if (-4095..0).contains(&r) {
        panic!("failed with {}", errname(-r));
    }
    r
}

/// The call failed with errno `e`.
#[track_caller]
pub fn err(r: i64, e: i32) {
    if r != -i64::from(e) {
        panic!("gave {}, expected {}", show(r), errname(e.into()));
    }
}

/// The call failed with one of `es` (file systems or kernels differ).
#[track_caller]
pub fn errs(r: i64, es: &[i32]) {
    if !es.iter().any(|e| r == -i64::from(*e)) {
        let names: Vec<_> = es.iter().map(|e| errname(i64::from(*e))).collect();
        panic!("gave {}, expected {}", show(r), names.join(" or "));
    }
}

/// `got` is `want`.
#[track_caller]
pub fn eq<A: PartialEq<B> + Debug, B: Debug>(got: A, want: B) {
    if got != want {
        panic!("got {got:?}, expected {want:?}");
    }
}

/// `cond` holds; `what` says what did not.
#[track_caller]
pub fn check(cond: bool, what: &str) {
    if !cond {
        panic!("not so: {what}");
    }
}

static FAILURE: Mutex<String> = Mutex::new(String::new());

/// Makes panics keep their text and place for the caller instead of printing them.
pub fn keep_failures() {
    std::panic::set_hook(Box::new(|info| {
        let text = match (info.payload().downcast_ref::<&str>(), info.payload().downcast_ref::<String>()) {
            (Some(s), _) => (*s).to_string(),
            (_, Some(s)) => s.clone(),
            _ => "panic".to_string(),
        };
        let place = info.location().map_or(String::new(), |l| {
            format!("{}:{}: ", l.file().rsplit('/').next().unwrap_or(""), l.line())
        });
        if let Ok(mut f) = FAILURE.lock() {
            *f = format!("{place}{text}");
        }
    }));
}

/// Text and place of the last panic in this process.
pub fn last_failure() -> String {
    FAILURE.lock().map(|f| f.clone()).unwrap_or_default()
}
