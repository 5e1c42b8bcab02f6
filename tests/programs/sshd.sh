# sshd: a command, its status, much data, a terminal.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
d=$(mktemp -d); cd $d; ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f key; cp key.pub auth; chmod 600 auth
mkdir -p /run/sshd 2>/dev/null
/usr/sbin/sshd -D -e -p $port -f /dev/null -o HostKey=$d/host -o AuthorizedKeysFile=$d/auth -o StrictModes=no -o UsePAM=no -o PidFile=$d/pid -o ListenAddress=127.0.0.1 2>log & s=$!
o="-p $port -i $d/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -F /dev/null"
until ssh $o 127.0.0.1 true 2>/dev/null; do kill -0 $s || break; sleep 0.1; done
ssh $o 127.0.0.1 'echo from ssh; id -u; exit 3'; echo $?; seq 100000 | ssh $o 127.0.0.1 sha256sum; ssh -tt $o 127.0.0.1 'tty | sed s/[0-9]*$//; stty size' </dev/null
kill $s; wait $s 2>/dev/null; cd /; rm -r $d
