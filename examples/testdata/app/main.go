// Command app is what the end-to-end tests run in containers. What it does its
// first argument says.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	var err error
	switch mode := os.Args[1]; mode {
	case "serve":
		err = serve(os.Args[2:])
	case "exit":
		status, _ := strconv.Atoi(os.Args[2])
		os.Exit(status)
	case "wait": // in spite of signals
		signal.Ignore(syscall.SIGTERM)
		select {}
	case "write":
		path := filepath.Join(os.Getenv("DIEGO_CONTAINER_DIR"), os.Args[2])
		err = os.WriteFile(path, []byte(os.Args[3]), 0o644)
	case "join": // files, in one with a line for each
		err = join(os.Args[2], os.Args[3:])
	default:
		err = fmt.Errorf("unknown mode %q", mode)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "app:", err)
		os.Exit(1)
	}
}

func join(to string, files []string) error {
	var all []string
	for _, file := range files {
		content, err := os.ReadFile(os.ExpandEnv(file))
		if err != nil {
			return err
		}
		all = append(all, string(content))
	}
	return os.WriteFile(to, []byte(strings.Join(all, "\n")), 0o644)
}

// lame is for how long the app still answers after SIGTERM: those who were
// sent here before they heard that it leaves.
const lame = 2 * time.Second

func serve(args []string) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	life := flags.Duration("for", 0, "end with status 1 after that time")
	below := flags.Int("ready-below", math.MaxInt, "instances from that index on are never ready for traffic")
	_ = flags.Parse(args) // it exits
	index, _ := strconv.Atoi(os.Getenv("INSTANCE_INDEX"))
	if *life > 0 {
		time.AfterFunc(*life, func() { os.Exit(1) })
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: ":" + os.Getenv("PORT"), ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/ready" && index >= *below {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			fmt.Fprintf(w, "%s %s", os.Getenv("INSTANCE_INDEX"), os.Getenv("INSTANCE_GUID"))
		})}
	stopped := make(chan error)
	context.AfterFunc(ctx, func() {
		time.Sleep(lame)
		stopped <- server.Shutdown(context.Background())
	})
	fmt.Println("serving on", server.Addr)
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return <-stopped
}
