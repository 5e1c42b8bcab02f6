# pgbench with four clients through a local socket.
d=$(mktemp -d); cd $d; chmod 755 $d; B=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1); export HOME=$d TZ=UTC
[ $(id -u) != 0 ] || { chown 65534 $d; as='setpriv --reuid 65534 --regid 65534 --clear-groups'; }
$as $B/initdb -D $d/db -U me --locale=C.UTF-8 --no-sync >out 2>&1 || cat out
$as $B/pg_ctl -D $d/db -w -l $d/log -o "-k $d -c listen_addresses=''" start >out2 || cat log
p="$as $B/pgbench -h $d -U me"; $p -qi -s 1 postgres 2>&1 | grep -c done; $p -n -c 4 -j 2 -t 100 postgres 2>&1 | grep -E "processed|failed trans"
$as $B/pg_ctl -D $d/db -m fast -w stop | tail -n 1; grep -c 'database system is shut down' log; cd /; rm -rf $d
