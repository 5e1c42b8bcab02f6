# memcached with four threads and sixteen clients.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export port
memcached -U 0 -l 127.0.0.1 -p $port -u nobody -t 4 & m=$!
until bash -c "exec 3<>/dev/tcp/127.0.0.1/$port" 2>/dev/null; do kill -0 $m || break; sleep 0.1; done
python3 - <<'P'
import os, socket, threading
def work(n):
    s = socket.create_connection(("127.0.0.1", int(os.environ["port"]))); f = s.makefile("rwb")
    for i in range(300):
        v = b"v%d-%d" % (n, i); f.write(b"set k%d 0 0 %d\r\n%s\r\nget k%d\r\n" % (n, len(v), v, n)); f.flush()
        assert f.readline() == b"STORED\r\n"; f.readline(); assert f.readline().strip() == v; f.readline()
    ok.append(n)
ok = []; ts = [threading.Thread(target=work, args=(n,)) for n in range(16)]
[t.start() for t in ts]; [t.join() for t in ts]; print(len(ok))
P
kill $m; wait $m; echo $?
