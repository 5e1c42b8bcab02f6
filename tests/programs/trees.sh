# Trees of N files: tar, rsync -a, cp -a, du, find -newer, rm -rf.
set -e; export N=${N:-1500}
d=$(mktemp -d); cd $d
umask 022; mkdir a; cd a
python3 - <<'P'
import os
def path(i): return "d%d/e%d/f%d" % (i % 50, i % 1000, i)
for i in range(int(os.environ["N"])):
    if i < 1000: os.makedirs(os.path.dirname(path(i)))
    if i % 10 == 7: os.symlink("../../" + path(i - 7), path(i))
    elif i % 10 == 9: os.link(path(i - 1), path(i))
    else:
        with open(path(i), "w") as f: f.write("%d\n" % i * (i % 23))
        os.chmod(path(i), 0o600 + i % 0o100)
    os.utime(path(i), ns=(i * 10**9 + 5, i * 10**9 + 123456789), follow_symlinks=False)
P
cd ..
say() { (cd $1; find . -printf '%P %y %m %n %l ' \( -type d -printf '\n' -o -printf '%s %T@\n' \) | sort | sha256sum; find . -type f -print0 | sort -z | xargs -0 cat | sha256sum); }
say a
tar cf t.tar a; mkdir b; tar xpf t.tar -C b; say b/a; rm t.tar
rsync -aH a/ c/; say c; rsync -aHn --itemize-changes a/ c/ | wc -l
cp -a a e; say e; diff -r a e && echo same
du -s --inodes a; du -s --apparent-size --block-size=1 a/d8/e8/f*; find a -newer a/d3/e3/f1003 -type f | wc -l; find a -samefile a/d8/e8/f8 | sort
mv e/d1 e/renamed; mv e/d2/e2 e/d3/; find e -type f | wc -l
rm -rf a b c e; ls; cd /; rmdir $d
