//! Mounts that programs make inside: never a way to what the policy covers or hides, for root of the sandbox and for others;
//! and programs that live by them (util-linux, busybox, bubblewrap).

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;
use support::{Place, Who, command, run};

const LIMIT: Duration = Duration::from_secs(60);

/// What an attacker does with $B, in which `covered` lies below a tmpfs of the policy, `hidden` is hidden and `ro` read-only.
const ATTACK: &str = r#"
B=$1
M=/tmp/attack; mkdir -p $M /tmp/other
all() { for d in "$@"; do cat $d/covered/secret $d/hidden/secret $d/plain/secret $d/secret; done; find "$@" -name secret -exec cat '{}' ';'; }
in_space() {
  umount $B/covered; all $B; umount -l $B/covered; all $B
  mount --bind $B $M; all $M; umount $M; umount -l $M
  mount --bind $B/hidden $M; all $M; umount $M
  mount --bind / $M; all $M$B; umount $M
  mount --rbind $B $M; all $M; umount $M/covered; umount -l $M/covered; all $M; umount -l $M
  mount --rbind / $M; umount -l $M$B/covered; all $M$B; mount --make-rprivate $M; umount -l $M
  mount --move $B/covered $M; all $B $M; umount $M
  mount --make-shared /; mount --rbind / $M; umount -l $M; all $B; mount --make-rprivate /
  mount -o bind,remount,rw $B/ro; mount -o remount,rw $B/ro; echo no >$B/ro/file; echo no >$B/ro/new
  mount -t tmpfs x $B; all $B; umount $B; all $B
  mount -t overlay -o lowerdir=$B x $M; all $M; umount $M
  mount -t ext4 /dev/vda $M; mount -t devtmpfs x $M; ls $M/vda; umount $M
  mv $B/covered $B/elsewhere; rmdir $B/covered; ln -s $B/covered $M/link; all $B/elsewhere
  cd $B; exec 9<.; umount -l $B/..; all /proc/self/fd/9 . ; cd /
  cd $B/covered; mount --rbind $B /tmp/other; all .. ../covered; cd /; umount -l /tmp/other
  busybox unshare -m busybox umount -l $B/covered
  mount -t tmpfs x $M; mkdir -p $M/old $M/bin; cp /bin/busybox $M/bin; pivot_root $M $M/old
  /bin/busybox umount -l /old$B/covered; /bin/busybox cat /old$B/covered/secret /old$B/hidden/secret
  /bin/busybox umount -l /old; /bin/busybox cat /$B/hidden/secret
}
in_space
exec 2>/dev/null
"#;

struct Ground {
    base: PathBuf,
}

impl Ground {
    fn new() -> Ground {
        let base = std::env::temp_dir().join(format!(
            "mounts.{}.{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let base = PathBuf::from(base.to_string_lossy().replace(['(', ')'], ""));
        for (dir, text) in [("covered", "COVERED"), ("hidden", "HIDDEN"), ("plain", "PLAIN")] {
            std::fs::create_dir_all(base.join(dir)).expect("mkdir");
            std::fs::write(base.join(dir).join("secret"), format!("{text}-SECRET\n")).expect("write");
        }
        std::fs::create_dir_all(base.join("ro")).expect("mkdir");
        std::fs::write(base.join("ro/file"), "as it was\n").expect("write");
        for path in ["", "covered", "hidden", "plain", "ro"] {
            std::fs::set_permissions(base.join(path), PermissionsExt::from_mode(0o777)).expect("chmod");
        }
        std::fs::set_permissions(base.join("ro/file"), PermissionsExt::from_mode(0o666)).expect("chmod");
        Ground { base }
    }

    fn at(&self, name: &str) -> String {
        self.base.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

/// `wrap`: what the attack runs in.
fn attack(platform: &'static str, who: Who, wrap: &[&str]) -> Result<(), Failed> {
    let ground = Ground::new();
    let (covered, hidden, ro) = (ground.at("covered"), ground.at("hidden"), ground.at("ro"));
    let options = ["--tmpfs", &covered, "--hide", &hidden, "--read-only", &ro];
    let base = ground.base.to_string_lossy().into_owned();
    let script = format!("({ATTACK}) 2>/dev/null; echo END");
    let argv = [wrap, &["/bin/sh", "-c", &script, "sh", &base]].concat();
    let told = run(&mut command(Place::Inside(platform), who, &options, &argv), LIMIT, b"");
    let text = told.out();
    if !text.contains("END") || !text.contains("PLAIN-SECRET") {
        return Err(format!("the attack did not run: {}", told.brief()).into());
    }
    for secret in ["COVERED-SECRET", "HIDDEN-SECRET"] {
        if text.contains(secret) {
            return Err(format!("{secret} was read").into());
        }
    }
    if std::fs::read_to_string(ground.at("ro/file"))? != "as it was\n" || ground.base.join("ro/new").exists()
    {
        return Err("the host's file was changed".into());
    }
    Ok(())
}

/// Programs and what they print: natively in mounts of their own, and inside.
const PROGRAMS: [(&str, &str, &str); 11] = [
    (
        "findmnt",
        "mount -t tmpfs -o size=1m,noexec src /mnt && findmnt -n -o TARGET,SOURCE,FSTYPE,OPTIONS /mnt | tr -s ' '",
        "/mnt src tmpfs rw,noexec,relatime,size=1024k",
    ),
    (
        "umount",
        "mount -t tmpfs x /mnt && touch /mnt/f && umount /mnt && ls /mnt/f 2>/dev/null; findmnt -n /mnt; echo done",
        "done",
    ),
    (
        "busybox",
        "busybox mount -t tmpfs x /mnt && busybox mkdir /mnt/a && busybox mount --bind /mnt/a /media && busybox touch /media/f && ls /mnt/a",
        "f",
    ),
    (
        "chroot",
        "mount -t tmpfs x /mnt && mkdir /mnt/bin && cp /bin/busybox /mnt/bin/sh && busybox chroot /mnt /bin/sh -c 'echo /*'",
        "/bin",
    ),
    (
        "unshare",
        "mount -t tmpfs x /mnt; unshare -m sh -c 'mount -t tmpfs y /mnt; touch /mnt/f'; ls /mnt; unshare -u sh -c 'hostname port; uname -n'",
        "port",
    ),
    (
        "nsenter",
        "mount -t tmpfs x /mnt; mkfifo /mnt/up; unshare -u sh -c 'hostname port; echo >/mnt/up; exec sleep 100' & read up </mnt/up; nsenter -t $! -u uname -n; kill $!",
        "port",
    ),
    (
        "bwrap",
        "bwrap --ro-bind / / --tmpfs /tmp --dev /dev --proc /proc --unshare-uts --hostname port sh -c 'uname -n; touch /usr/x || ls /tmp' 2>/dev/null",
        "port",
    ),
    (
        "unshare_pids",
        "unshare -p -f --mount-proc ps ax -o pid= -o ppid= -o comm= | tr -s ' '; unshare -p -f --kill-child sh -c 'echo $$ $PPID'",
        " 1 0 ps\n1 0",
    ),
    (
        "bwrap_all",
        "bwrap --unshare-all --dev-bind / / --proc /proc ps ax -o pid= -o ppid= -o comm= 2>&1 | tr -s ' '",
        " 1 0 bwrap\n 2 1 ps",
    ),
    (
        "bwrap_init",
        "bwrap --unshare-all --as-pid-1 --dev-bind / / --proc /proc sh -c 'sleep 0.01 & kill -9 $$; wait; echo $$ alive' 2>&1",
        "1 alive",
    ),
    (
        "nsenter_pids",
        "mount -t tmpfs x /mnt; mkfifo /mnt/up; unshare -p -f --mount-proc sh -c 'echo >/mnt/up; exec sleep 100' & read up </mnt/up; p=$(ps -o pid= --ppid $!); nsenter -t $p -p -m sh -c 'echo $$; ps ax -o pid=' | tr -s ' \n' ' '; kill -9 $p",
        "2 1 2 3",
    ),
];

fn program(place: Place, who: Who, script: &str, want: &str) -> Result<(), Failed> {
    // The mounts of the script are its own.
    let space: &[&str] = if who == Who::Ordinary { &["unshare", "-r", "-m"] } else { &["unshare", "-m"] };
    let argv = [space, &["/bin/sh", "-c", script]].concat();
    let told = run(&mut command(place, who, &[], &argv), LIMIT, b"");
    // Who mounts as another user is named in the options.
    let text = told.out().trim_end().split(",uid=").next().unwrap_or_default().to_owned();
    if text == want { Ok(()) } else { Err(format!("{text:?}, wanted {want:?}: {}", told.brief()).into()) }
}

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    let whos = |place: Place| match place {
        _ if !support::is_root() => vec![Who::Caller],
        _ => vec![Who::Caller, Who::Ordinary],
    };
    let suffix = |who| if who == Who::Ordinary || !support::is_root() { "-user" } else { "" };
    let mut places = vec![Place::Native];
    for platform in support::PLATFORMS {
        if let Some(why) = support::unusable(platform) {
            eprintln!("mounts: not run on {platform}: {why}");
            continue;
        }
        places.push(Place::Inside(platform));
        for who in whos(Place::Inside(platform)) {
            let wraps: &[(&str, &'static [&str])] = match (who, support::is_root()) {
                (Who::Caller, true) => &[
                    ("plain", &[]),
                    ("own_mounts", &["unshare", "-m"]),
                    ("own_users", &["unshare", "-r", "-m"]),
                ],
                _ => &[("plain", &[]), ("own_users", &["unshare", "-r", "-m"])],
            };
            for (name, wrap) in wraps.iter().copied() {
                let name = format!("{platform}{}/attack_{name}", suffix(who));
                trials.push(Trial::test(name, move || attack(platform, who, wrap)));
            }
        }
    }
    for place in places {
        for who in whos(place) {
            for (name, script, want) in PROGRAMS {
                // bubblewrap in a user namespace mounts a proc, and so needs a PID namespace; the others below have one.
                let own_pids = name == "bwrap" && suffix(who) == "-user";
                if own_pids || name == "nsenter" && suffix(who) == "-user" {
                    continue;
                }
                let name = format!("{}{}/{name}", place.name(), suffix(who));
                trials.push(Trial::test(name, move || program(place, who, script, want)));
            }
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
