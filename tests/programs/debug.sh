# Hardware watchpoints on writes and reads, calls that are caught, both sides of a fork, a core file that a crash leaves and
# one that gdb makes, strace with counts and with stacks, ltrace. When gdb tells of a fork is a matter of chance.
d=$(mktemp -d); cd $d; cat >p.c <<'X'
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
volatile int counter, other;
int leaf(int n) {
    int local = n * 2;
    counter += local;
    return local;
}
int main(int argc, char **argv) {
    leaf(21);
    other = counter;
    int x = other + 1;
    if (!fork()) {
        leaf(5);
        _exit(3);
    }
    int status;
    wait(&status);
    printf("%d %d\n", x, status >> 8);
    fflush(stdout);
    if (argc > 1) *(volatile int *)0 = 1;
    return 0;
}
X
gcc -g -O0 p.c -o p
plain() { sed -E "s/0x[0-9a-f]+/P/g; s/(process|LWP|Thread P) [0-9]+/N/g; s/[(]LWP N[)]//" | grep -vE 'libthread_db|debuginfo|^Using host|_exit.c|^\[Detaching after'; }
g() { gdb -nx -batch "$@" 2>&1 | plain; }
g -ex 'break main' -ex run -ex 'watch other' -ex c -ex c ./p
for how in rwatch awatch; do g -ex 'break leaf' -ex run -ex "$how other" -ex c -ex c -ex c ./p; done
g -ex 'catch syscall exit_group' -ex run -ex c -ex c ./p
g -ex 'set follow-fork-mode child' -ex 'break leaf if n==5' -ex 'run >said' -ex 'bt' -ex c ./p
g -ex 'catch fork' -ex 'catch exec' -ex run -ex c -ex c --args sh -c '/bin/true; echo end' | grep -E 'atchpoint|end'
g -ex run -ex 'p $_siginfo.si_code' -ex 'generate-core-file made' --args ./p crash | grep -vE 'unexpected null|Memory read failed'
g -ex bt -ex 'p counter' ./p made | grep -E '^(#|Program|\$)'
if [ "$(cat /proc/sys/kernel/core_pattern)" = core ]; then
  (ulimit -c unlimited; ./p crash) 2>/dev/null; g -ex bt -ex 'p counter' ./p core* | grep -E '^(#|Program|\$)'
fi
strace -f -c -o s sh -c 'ls / >/dev/null; echo a | cat'; awk 'NR > 2 { print $NF }' s | sort | tr '\n' ' '
command -v ltrace >/dev/null && ltrace -e strlen+getenv ls /etc/hostname 2>&1 | sed -E 's/0x[0-9a-f]+/P/g' | head -5
cd /; rm -r $d
