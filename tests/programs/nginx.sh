# nginx under ab and wrk.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
d=$(mktemp -d); cd $d; mkdir html logs; seq 1000 >html/index.html
cat >c <<X
daemon off; pid $d/pid; error_log $d/logs/e; worker_processes 2;
events { worker_connections 256; }
http { access_log $d/logs/a; client_body_temp_path $d/b; proxy_temp_path $d/p; fastcgi_temp_path $d/f; uwsgi_temp_path $d/u; scgi_temp_path $d/s; server { listen 127.0.0.1:$port; root $d/html; } }
X
chmod 755 $d; /usr/sbin/nginx -p $d -c $d/c & n=$!
until curl -s -o /dev/null http://127.0.0.1:$port/; do kill -0 $n || break; sleep 0.1; done
curl -s http://127.0.0.1:$port/ | sha256sum; ab -q -n 2000 -c 20 http://127.0.0.1:$port/ | grep -E 'Complete|Failed|Non-2xx'
wrk -t2 -c20 -d2s http://127.0.0.1:$port/ | grep -E 'Socket errors|Non-2xx'; curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:$port/none
kill -QUIT $n; wait $n; echo $?; cd /; rm -r $d
