# initdb and queries of a single user; root lets another user do it, as the server demands.
d=$(mktemp -d); cd $d; chmod 755 $d; B=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1); export HOME=$d TZ=UTC
[ $(id -u) != 0 ] || { chown 65534 $d; as='setpriv --reuid 65534 --regid 65534 --clear-groups'; }
$as $B/initdb -D $d/db -U me --locale=C.UTF-8 --no-sync >out 2>&1 || cat out
grep -o 'Success' out
$as $B/postgres --single -c log_checkpoints=off -D $d/db postgres <<'Q' 2>&1 | grep -v '^backend>\|LOG'
create table t (a int primary key, b text);
insert into t select n, 'row' || n from generate_series(1, 5000) n;
create index on t (b);
select count(*), sum(a), max(b) from t;
select b from t where b = 'row77';
explain (costs off) select * from t where a = 5;
select sha256(string_agg(b, ',' order by a)::bytea) from t;
vacuum analyze t;
checkpoint;
Q
cd /; rm -rf $d
