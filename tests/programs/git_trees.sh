# A repository of N files: clone, checkout, gc, fsck, status.
set -e; export N=${N:-800}
d=$(mktemp -d); cd $d
export HOME=$d GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
export GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z
git config --global gc.auto 0; git init -q -b main a; cd a
awk 'BEGIN { for (i = 0; i < ENVIRON["N"]; i++) { if (i % 100 == 0) system("mkdir -p d" i % 7 "/s" int(i / 100)); f = "d" int(i / 100) * 100 % 7 "/s" int(i / 100) "/f" i; print "file", i, i * i > f; close(f) } }'
git add .; git commit -qm one; git rev-parse HEAD^{tree}
git checkout -qb two; for i in 0 1 2 3 4 5 6; do echo more >>d$i/new; done; rm -r d2; git add -A; git commit -qm two; git rev-parse HEAD^{tree}
git checkout -q main; git status --porcelain | wc -l; find . -path ./.git -prune -o -type f -print | wc -l
git clone -q . ../b; git clone -q --no-local --depth 1 "file://$d/a" ../c; cd ../b; git status --porcelain | wc -l
git checkout -q two 2>&1; git ls-files | sha256sum; git diff --stat main | tail -1
git gc -q; git fsck --full 2>&1 | { grep -v '^dangling' || true; }; git count-objects -v | grep -E '^(count|in-pack|packs|garbage)'
cd ../c; git log --oneline | wc -l; find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 cat | sha256sum
cd /; rm -rf $d
