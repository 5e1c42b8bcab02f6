//! The process that becomes the sentry.

use crate::control::Message;
use crate::setup::{self, SentrySetup};
use platform::confine::{self, host};
use std::os::fd::{OwnedFd, RawFd};
use std::process::ExitCode;

/// Starts the sentry in its namespaces as the launcher's child, and ends; goes on in the sentry.
pub fn run(fd: RawFd) -> ExitCode {
    let setup = match setup::load::<SentrySetup>(fd) {
        Ok(setup) => setup,
        Err(error) => return crate::failure(&format!("sentry: {error}")),
    };
    let mut keep: Vec<RawFd> = vec![setup.control];
    keep.extend(setup.lanes.iter().chain(&setup.report).chain(&setup.trace).chain(&setup.tty));
    host::close_all_but(&keep);
    let control = match host::inherited(setup.control) {
        Ok(control) => control,
        Err(error) => return crate::failure(&format!("sentry: control socket: {error}")),
    };
    match confine::enter_namespaces() {
        Ok(Some(pid)) => {
            Message::Pid(pid).send(&control);
            ExitCode::SUCCESS
        }
        Ok(None) => sentry_main(setup, control),
        Err((what, error)) => {
            Message::Failed(crate::FAILURE, format!("sentry: {what}: {error}{}", hint(&error))).send(&control);
            ExitCode::SUCCESS
        }
    }
}

/// What to change where namespaces are forbidden.
pub fn hint(error: &std::io::Error) -> &'static str {
    let is = |path: &str, value: &str| std::fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    let forbidden = error
        .raw_os_error()
        .is_some_and(|errno| [libc::EPERM, libc::EACCES, libc::ENOSPC, libc::EINVAL, libc::EUSERS].contains(&errno));
    if !forbidden {
        ""
    } else if is("/proc/sys/user/max_user_namespaces", "0") {
        "; user namespaces are off: set sysctl user.max_user_namespaces above 0"
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "; user namespaces are off for ordinary users: set sysctl kernel.unprivileged_userns_clone=1"
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "; AppArmor restricts user namespaces: set sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    } else {
        "; user, mount, pid, network, IPC and UTS namespaces are needed"
    }
}

fn sentry_main(setup: SentrySetup, control: OwnedFd) -> ! {
    if let Err(text) = serve(setup, &control) {
        Message::Failed(crate::FAILURE, text).send(&control);
    }
    host::exit_now(crate::FAILURE.into())
}

fn serve(setup: SentrySetup, control: &OwnedFd) -> Result<(), String> {
    let at = |what: &'static str| move |error: rustix::io::Errno| format!("sentry: {what}: {error}");
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(at("setting the parent's signal"))?;
    rustix::thread::set_name(c"lazaret-sentry").map_err(at("naming the process"))?;
    // The terminal's signals come by the launcher, once.
    rustix::process::setsid().map_err(at("making a session"))?;
    host::few_arenas();
    let vdso = platform::trap::vdso_extent();
    confine::empty_root().map_err(|e| format!("sentry: making an empty root: {e}{}", hint(&e)))?;
    rustix::thread::set_no_new_privs(true).map_err(at("setting no_new_privs"))?;
    let platform = platform(&setup, vdso)?;
    confine::drop_capabilities().map_err(|e| format!("sentry: dropping capabilities: {e}"))?;
    confine::install(setup.platform == "ptrace").map_err(|e| format!("sentry: installing the filter: {e}"))?;
    let _ = (platform, control);
    Err("the kernel cannot run programs yet".to_owned())
}

fn platform(setup: &SentrySetup, vdso: (u64, u64)) -> Result<std::sync::Arc<dyn platform::Platform>, String> {
    use platform::trap::{TrapConfig, TrapPlatform};
    match setup.platform.as_str() {
        "trap" => {
            let config = TrapConfig { namespaces: true, vdso: Some(vdso), ..TrapConfig::default() };
            TrapPlatform::new(&config)
        }
        other => Err(format!("no platform {other}")),
    }
}
