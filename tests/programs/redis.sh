# All of redis-benchmark against a server, both inside.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
d=$(mktemp -d); cd $d
redis-server --port $port --save '' --appendonly no --daemonize no --dir $d >log 2>&1 & r=$!
until redis-cli -p $port ping 2>/dev/null | grep -q PONG; do kill -0 $r || break; sleep 0.1; done
redis-benchmark -p $port -q -n 2000 -c 20 2>&1 | tr '\r' '\n' | grep -c 'requests per second'
redis-cli -p $port set a 1; redis-cli -p $port incr a; redis-cli -p $port shutdown nosave; wait $r; echo $?; cd /; rm -r $d
