# The server with several clients and parallel workers: shared memory, semaphores, signals, a local socket.
d=$(mktemp -d); cd $d; chmod 755 $d; B=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1); export HOME=$d TZ=UTC
[ $(id -u) != 0 ] || { chown 65534 $d; as='setpriv --reuid 65534 --regid 65534 --clear-groups'; }
$as $B/initdb -D $d/db -U me --locale=C.UTF-8 --no-sync >out 2>&1 || cat out
$as $B/pg_ctl -D $d/db -w -l $d/log -o "-k $d -c listen_addresses=''" start >out2 || cat log
q() { $as $B/psql -h $d -U me -d postgres -qAtX "$@"; }
q -c 'create table t (a int, b text)' -c "insert into t select n, md5(n::text) from generate_series(1, 20000) n"
for i in 1 2 3 4; do q -c "update t set a = a + 1 where a % 4 = $i - 1; select count(*) from t" >o$i & done; wait
cat o?; q -c 'select count(*), min(b) from t' -c 'create index on t (b)' -c 'select version() ~ $$PostgreSQL$$'
q -c 'set max_parallel_workers_per_gather = 2; set parallel_setup_cost = 0; set min_parallel_table_scan_size = 0; select sum(length(b)) from t'
$as $B/pg_ctl -D $d/db -m fast -w stop | tail -n 1; grep -c 'database system is shut down' log; cd /; rm -rf $d
