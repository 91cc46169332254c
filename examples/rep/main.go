// Command rep is a cell: it runs containers and keeps them in harmony with the
// control plane's records. SIGTERM, or a POST to /v1/cell/evacuate, drains it:
// its work moves to other cells, and then it ends. A second signal ends it at
// once, and real containers with it; plain processes live on until a cell
// starts in the same directory. With --check it only says what this host can do.
//
// It runs real containers, or refuses to start where the host cannot; with
// --backend auto or process, plain processes will do:
//
//	go run ./examples/rep --cell-id cell-1 --dir cell-1 --bbs https://127.0.0.1:8889 --backend auto \
//		--tls-cert certs/cell-1.pem --tls-key certs/cell-1-key.pem --tls-ca certs/ca.pem
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"

	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
)

type settings struct {
	daemon.Logging
	daemon.Endpoint
	BBS     []string `name:"bbs" required:"true" help:"base URLs of the control planes"`
	Drain   bool     `name:"drain" default:"true" help:"let the work leave the cell before it ends; otherwise it is missing at once"`
	Examine bool     `name:"check" help:"only say what this host can do for containers, and what would help, and exit with 0 if it can run real ones, else with 1; of the other settings only dir and log_format count"`
	daemon.Cell
}

// Excused implements daemon.Excuser.
func (s *settings) Excused() bool { return s.Examine }

// Check implements daemon.Checker.
func (s *settings) Check(report func(name, want string)) {
	s.Endpoint.Check(report)
	s.CheckURLs(report, "bbs", s.BBS)
	s.CheckCell(report)
}

func main() {
	s := &settings{Endpoint: daemon.Endpoint{Listen: "127.0.0.1:1801"}, Cell: daemon.Cell{Backend: daemon.RealBackend}}
	daemon.Main("rep", "a cell, which runs containers", s, s.run)
}

func (s *settings) run(ctx context.Context, log *slog.Logger) error {
	if s.Examine {
		return s.examine(ctx)
	}
	server, err := s.Endpoint.Open(httpapi.Identity{Name: s.CellID, Roles: []httpapi.Role{httpapi.CellRole}}, log)
	if err != nil {
		return err
	}
	defer server.Close()
	if err := server.CheckIdentity(s.IdentityCACert); err != nil {
		return err
	}
	client := server.Client()
	client.Addresses = s.BBS
	remote, err := httpapi.NewRemoteBBS(client)
	if err != nil {
		return err
	}
	cell, backend, err := s.Cell.Open(ctx, remote, server.URL, server.Figures, log)
	if err != nil {
		return err
	}
	defer func() {
		if err := backend.Close(); err != nil {
			log.Warn("something of the cell may be left on this host; its next start removes it", "err", err)
		}
	}()

	// The cell is asked and answers until it is empty.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	context.AfterFunc(ctx, func() {
		if !s.Drain || cell.Evacuate(running) != nil {
			stop()
		}
	})
	return server.Serve(running, s.Limit(httpapi.HandlerOptions{Cell: cell, Ready: cell.Ready}), backend.Keep(cell.Run))
}

// examine writes what this host can do, as a table or as one JSON document. Its
// error is why the host cannot run real containers.
func (s *settings) examine(ctx context.Context) error {
	e := daemon.Examine(ctx, cmp.Or(s.Dir, os.TempDir()))
	var err error
	if s.LogFormat == "json" {
		err = json.NewEncoder(os.Stdout).Encode(e)
	} else {
		err = e.Write(os.Stdout)
	}
	if err == nil && !e.RealContainers {
		err = errors.New(e.Verdict)
	}
	return err
}
