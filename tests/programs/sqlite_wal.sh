# Two processes write one database in WAL mode, a third reads.
set -e; d=$(mktemp -d); cd $d
sqlite3 db 'pragma journal_mode=wal; create table t(who, n)'
w() { for i in $(seq 60); do echo ".timeout 20000"; echo "begin immediate; insert into t values('$1', $i); update t set n = n + 0 where who = '$1'; commit;"; done | sqlite3 db; }
w a & a=$!; w b & b=$!
for i in 1 2 3 4 5; do sqlite3 -readonly db '.timeout 20000' 'select count(*) >= 0 from t'; done
wait $a; wait $b
sqlite3 db 'select who, count(*), sum(n) from t group by who; pragma integrity_check; pragma wal_checkpoint(truncate); pragma journal_mode=delete'
ls; cd /; rm -r $d
