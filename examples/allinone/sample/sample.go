// Package sample is what a fresh fleet runs, so that there is something to
// look at: a web app that says which instance it is and ends when it is asked
// to, and a task that computes something. They are part of the binary that runs
// the fleet, and [Volume] mounts that binary into their containers. So they need no
// image, no network and no compiler.
package sample

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// Command is the first argument of the binary where it is to be the sample
// app or task.
const Command = "sample"

// Main runs the sample app, or the task if the arguments after Command are
// "count" and a number. It returns the exit status.
func Main(args []string) int {
	var err error
	switch {
	case len(args) == 0:
		err = serve()
	case len(args) == 2 && args[0] == "count":
		err = count(args[1])
	default:
		err = fmt.Errorf("unknown arguments %q", args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sample:", err)
		return 1
	}
	return 0
}

// serve answers requests until SIGTERM.
func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	server := &http.Server{
		Addr: ":" + cmp.Or(os.Getenv("PORT"), "8080"), ReadHeaderTimeout: 10 * time.Second,
		Handler: handler(os.Getenv, os.Exit),
	}
	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(stopped)
		last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(last) // what it cannot wait for ends with us
	})
	fmt.Println("listening on", server.Addr)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	return nil
}

const answerTime = 100 * time.Millisecond

// handler answers who it is, and calls exit when that is asked for.
func handler(env func(string) string, exit func(int)) http.Handler {
	var requests atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "Hello from instance %s, process %d. This is request %d.\n", env("INSTANCE_INDEX"), os.Getpid(), requests.Add(1))
	})
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("POST /exit/{status}", func(w http.ResponseWriter, r *http.Request) {
		status, err := strconv.ParseUint(r.PathValue("status"), 10, 8)
		if err != nil {
			http.Error(w, "want an exit status from 0 to 255, such as POST /exit/3", http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "Instance %s ends with exit status %d.\n", env("INSTANCE_INDEX"), status)
		// The network goes with the container; the answer should get through first.
		time.AfterFunc(answerTime, func() { exit(int(status)) })
	})
	return mux
}

// count counts the primes below a number into the task's result file.
func count(below string) error {
	n, err := strconv.ParseUint(below, 10, 32)
	if err != nil {
		return fmt.Errorf("count: %q is not a number of at most 32 bits", below)
	}
	// Without a file system of its own, a container is a directory.
	path := filepath.Join(os.Getenv("DIEGO_CONTAINER_DIR"), ResultFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, fmt.Appendf(nil, "%d primes below %d", primes(int(n)), n), 0o644)
}

func primes(below int) (n int) {
	composite := make([]bool, below)
	for i := 2; i < below; i++ {
		if composite[i] {
			continue
		}
		n++
		for j := i * i; j < below; j += i {
			composite[j] = true
		}
	}
	return n
}
