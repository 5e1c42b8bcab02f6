# Fifty files and an archive, by two jobs at a time; what make builds again depends on times.
d=$(mktemp -d); cd $d; for i in $(seq 50); do printf '#include "all.h"\nint f%d(int n) { return n + %d * K; }\n' $i $i >f$i.c; done
(echo '#define K 3'; for i in $(seq 50); do echo "int f$i(int);"; done) >all.h
(printf '#include <stdio.h>\n#include "all.h"\nint main(void) { int n = 0;\n'; for i in $(seq 50); do echo "n = f$i(n);"; done; printf "%s\n" 'printf("%d\n", n); return 0; }') >main.c
cat >Makefile <<'M'
C := $(wildcard *.c)
O := $(C:.c=.o)
p: libf.a main.o
	@$(CC) -o $@ main.o -L. -lf
libf.a: $(filter-out main.o,$(O))
	@rm -f $@; ar rcs $@ $^
%.o: %.c all.h
	@$(CC) -O1 -g -Wall -c $<; echo $< >>log
M
make -s -j2 && ./p; wc -l <log; sed -i s/3/4/ all.h; sleep 0.1; touch all.h
make -s -j2 2>/dev/null && ./p; wc -l <log; sleep 0.1; touch f7.c; make -s -j2 2>/dev/null; tail -n 1 log; ar t libf.a | sort | sha256sum; nm p | grep -c ' T f'; strip p; ./p; cd /; rm -r $d
