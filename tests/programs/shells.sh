# Shells beside bash: each makes pipes, waits and traps in its own way (ksh makes pipes of socket pairs).
for s in ksh mksh zsh dash 'busybox sh'; do
  command -v ${s%% *} >/dev/null || continue
  echo "== $s"
  $s -c 'echo a; (exit 3); echo $?; x=$(echo y | cat); echo $x; sleep 0.1 & wait $!; echo $?
trap "echo term" TERM; kill -TERM $$; set -- 1 2 3; echo $#
for i in 1 2 3; do echo $i; done | while read l; do echo "<$l>"; done
cat <<X
here $x
X
umask; sh -c "exit 9"; echo $?; read a b </etc/hostname; echo ok; exec 3>/dev/null; echo z >&3
eval "echo \$((3*4))"; seq 5000 | sort -rn | head -2; (sleep 5 & sleep 0.3; kill $!; wait $! 2>/dev/null; echo $?)'
done
command -v zsh >/dev/null && zsh -fc 'cat =(echo file) <(echo pipe); coproc cat; print -p x; read -p y; echo $y
zmodload zsh/zpty && zpty a echo p && zpty -r a l && print -r -- ${l%%$'"'\r'"'*}'
