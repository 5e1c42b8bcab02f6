# Interpreters with threads, processes, signals and sockets of their own.
command -v tclsh >/dev/null && tclsh <<'X'
puts [exec echo hi | tr a-z A-Z]; set f [open "|cat" r+]; puts $f hello; flush $f; puts [gets $f]; close $f
after 100 {set x 1}; vwait x
set s [socket -server {apply {{c a p} {puts $c hey; close $c}}} -myaddr 127.0.0.1 0]
set c [socket 127.0.0.1 [lindex [fconfigure $s -sockname] 2]]
fileevent $c readable {puts [gets $::c]; set y 1}; vwait y; catch {exec false} e; puts $e
X
command -v lua5.4 >/dev/null && lua5.4 -e 'local f=io.popen("echo a b"); print(f:read("a")); f:close(); print(os.execute("exit 3"))
local c=coroutine.wrap(function() for i=1,3 do coroutine.yield(i) end end); print(c(),c(),c())'
command -v ruby >/dev/null && ruby -e 'p 4.times.map{|i| Thread.new{ (1..1000).sum*i }}.map(&:value)
trap("USR1"){puts "usr1"}; Process.kill("USR1",$$); sleep 0.1; pid=fork{exit 3}; Process.wait pid; p $?.exitstatus; puts `echo hi`
f=Fiber.new{Fiber.yield 1;2}; p f.resume,f.resume
require "timeout"; begin; Timeout.timeout(0.2){sleep 5}; rescue Timeout::Error; puts "timeout"; end
require "socket"; s=TCPServer.new("127.0.0.1",0); t=Thread.new{c=s.accept; c.puts "hey"; c.close}; p TCPSocket.new("127.0.0.1",s.addr[1]).read
require "pty"; PTY.spawn("echo pty"){|a,b,c| p a.gets}; at_exit{puts "bye"}; abort "end"'
command -v sbcl >/dev/null && sbcl --noinform --no-userinit --non-interactive --eval '(progn
(print (mapcar (function sb-thread:join-thread) (loop for i below 4 collect (let ((i i)) (sb-thread:make-thread (lambda () (* i i)))))))
(gc :full t) (print (with-output-to-string (s) (sb-ext:run-program "/bin/echo" (list "x") :output s)))
(print (handler-case (/ 1 (- 1 1)) (error () :div))) (print (handler-case (sb-ext:with-timeout 0.2 (sleep 3)) (sb-ext:timeout () :late)))
(print (handler-case (labels ((f (x) (1+ (f x)))) (f 1)) (storage-condition () :stack))))' 2>/dev/null | grep -v '^;'
command -v perl >/dev/null && perl -e 'use threads; my @t=map{my $i=$_; threads->create(sub{my $s=0; $s+=$_ for 1..1000; $s*$i})}1..4
; print join(",",map{$_->join}@t),"\n"; $SIG{ALRM}=sub{print "alarm\n"}; alarm 1; select(undef,undef,undef,3); my $p=fork; if(!$p){exit 7} waitpid $p,0; print $?>>8,"\n"'
