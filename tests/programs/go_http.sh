# net/http under 40 clients.
d=$(mktemp -d); cd $d; export HOME=$d GOFLAGS=-mod=mod GO111MODULE=off; cat >m.go <<'G'
package main
import ("fmt"; "io"; "net"; "net/http"; "sync"; "sync/atomic")
func main() { l, _ := net.Listen("tcp", "127.0.0.1:0"); go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hi ", r.URL.Path) }))
 var n int64; var g sync.WaitGroup
 for c := 0; c < 40; c++ { g.Add(1); go func(c int) { defer g.Done(); t := &http.Client{Transport: &http.Transport{}}
  for i := 0; i < 50; i++ { r, e := t.Get(fmt.Sprintf("http://%s/%d", l.Addr(), c)); if e != nil { fmt.Println(e); return }; b, _ := io.ReadAll(r.Body); r.Body.Close(); if string(b) == fmt.Sprintf("hi /%d", c) { atomic.AddInt64(&n, 1) } } }(c) }
 g.Wait(); fmt.Println(n) }
G
go run m.go; cd /; rm -r $d
