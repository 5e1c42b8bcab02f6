# A crate with a build script, a library and a test, built offline.
set -e; d=$(mktemp -d); cd $d; export HOME=$d CARGO_HOME=$d/home CARGO_TERM_COLOR=never CARGO_NET_OFFLINE=true PATH=/usr/bin:/bin
mkdir -p dep/src src; printf '[package]\nname = "dep"\nversion = "0.1.0"\nedition = "2021"\n' >dep/Cargo.toml
echo 'pub fn twice(n: u32) -> u32 { n * 2 }' >dep/src/lib.rs
printf '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\nbuild = "build.rs"\n[dependencies]\ndep = { path = "dep" }\n' >Cargo.toml
echo 'fn main() { println!("cargo:rustc-env=WHAT=built"); }' >build.rs
printf 'fn main() { println!("{} {}", env!("WHAT"), dep::twice(21)); }\n#[test]\nfn t() { assert_eq!(dep::twice(2), 4); }\n' >src/main.rs
/usr/bin/cargo build -q --offline; target/debug/app; /usr/bin/cargo run -q --release --offline; /usr/bin/cargo test -q --offline 2>&1 | grep 'test result' | sed 's/;.*//'
touch src/main.rs; /usr/bin/cargo build --offline 2>&1 | grep -c Compiling; cd /; rm -r $d
