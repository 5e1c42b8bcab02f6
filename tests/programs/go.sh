# Goroutines, the runtime's own signals, faults that become panics, child processes, the default action of a signal.
d=$(mktemp -d); cd $d; export HOME=$d GOCACHE=$d/c GOFLAGS=-mod=mod GOTOOLCHAIN=local GO111MODULE=off
cat >m.go <<'G'
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
)

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func main() {
	var wg sync.WaitGroup
	sums := make(chan int, 100)
	for i := 0; i < 100; i++ {
		wg.Add(1)
		go func(i int) { defer wg.Done(); sums <- fib(15 + i%5) }(i)
	}
	wg.Wait()
	close(sums)
	total := 0
	for s := range sums {
		total += s
	}
	fmt.Println("goroutines", total)

	// A loop without calls is interrupted by the runtime's signal alone.
	runtime.GOMAXPROCS(1)
	spinning, ended := make(chan bool), make(chan int)
	stop := false
	go func() {
		spinning <- true
		n := 0
		for i := 0; i < 400000000; i++ {
			n += i & 1
		}
		ended <- n
	}()
	<-spinning
	start := time.Now()
	time.Sleep(20 * time.Millisecond)
	fmt.Println("preempted", time.Since(start) < 5*time.Second, stop)
	fmt.Println("loop", <-ended)
	runtime.GOMAXPROCS(4)

	got := make(chan os.Signal, 10)
	signal.Notify(got, syscall.SIGUSR1, syscall.SIGTERM)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	fmt.Println("signal", <-got)
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	fmt.Println("signal", <-got)
	func() {
		defer func() { fmt.Println("recovered", recover()) }()
		var p *int
		*p = 1
	}()
	for i := 0; i < 5; i++ {
		wg.Add(1)
		go func() { defer wg.Done(); exec.Command("true").Run() }()
	}
	wg.Wait()
	out, err := exec.Command("sh", "-c", "echo child; exit 3").CombinedOutput()
	fmt.Printf("%s %v\n", out, err)
	select {
	case <-time.After(30 * time.Millisecond):
		fmt.Println("timer")
	}
	signal.Reset(syscall.SIGTERM)
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	time.Sleep(time.Second)
}
G
go vet m.go; go build -o m m.go; echo built $?; ./m; echo $?; cd /; rm -rf $d
