package system_test

import (
	"context"
	"errors"
	"iter"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/httpapi/problem"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
)

func TestALogReaderReadsTheLogsOfItsDomainsOnly(t *testing.T) {
	clock, _, containers, cell := newScriptedCell(t)
	tick := func() {
		for range 10 {
			containers.Tick(t.Context())
			clock.Advance(time.Second)
		}
	}
	// The guid of each container is its domain.
	for _, guid := range []string{"apps", "jobs", "gone", ""} {
		r := executor.Reservation{GUID: "of-" + guid, Tags: map[string]string{executor.TagDomain: guid}}
		if list := containers.Reserve(r); len(list) > 0 {
			t.Fatal(list[0].Err)
		}
		print := executor.Action{Run: &executor.RunAction{Path: scripted.Path, Args: []string{"print " + guid}, User: "app"}}
		if err := containers.Initialize(r.GUID, executor.Work{RunInfo: executor.RunInfo{RootFS: "host:", Action: print}}); err != nil {
			t.Fatal(err)
		}
	}
	tick()
	containers.Delete("of-gone")
	tick()

	a := newAuthority(t)
	server := func(c rep.API) string {
		handler, err := httpapi.NewHandler(httpapi.HandlerOptions{Cell: c})
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewUnstartedServer(handler)
		s.TLS = a.server("cell-1", "diego-cell")
		s.Config.ErrorLog = quiet
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.URL
	}
	// A cell that cannot say of which domain a container is.
	whole, blind := server(cell), server(struct{ rep.API }{cell})
	read := func(url, guid string, follow bool, units ...string) (text string, err error) {
		client, err := httpapi.NewRemoteCell(httpapi.ClientOptions{
			Addresses: []string{url}, CellID: "cell-1", TLS: a.client(a, time.Hour, "reader", units...),
		})
		if err != nil {
			t.Fatal(err)
		}
		for chunk, err := range client.Logs(t.Context(), rep.LogRequest{ContainerGUID: guid, Follow: follow}) {
			if err != nil {
				return text, err
			}
			if text += string(chunk.Data); follow {
				break // it would wait for more
			}
		}
		return text, nil
	}
	const reader, operator = "diego-log-reader", "diego-operator"
	for _, c := range []struct {
		name, url, guid string
		units           []string
		want            string // the text, or what the refusal says
		err             error
	}{
		{"its own", whole, "of-apps", []string{reader, "diego-domain:apps"}, "apps\n", nil},
		{"one of two", whole, "of-jobs", []string{reader, "diego-domain:apps", "diego-domain:jobs"}, "jobs\n", nil},
		{"of a container that is gone", whole, "of-gone", []string{reader, "diego-domain:gone"}, "gone\n", nil},
		{"another's", whole, "of-jobs", []string{reader, "diego-domain:apps"}, `the domain "jobs", and the role log-reader holds`, httpapi.ErrForbidden},
		{"another's that is gone", whole, "of-gone", []string{reader, "diego-domain:apps"}, `diego-domain:gone or diego-bbs, diego-operator is wanted`, httpapi.ErrForbidden},
		{"of no domain", whole, "of-", []string{reader, "diego-domain:apps", "diego-domain:"}, "has no domain", httpapi.ErrForbidden},
		{"without a domain", whole, "of-apps", []string{reader}, `its certificate, []`, httpapi.ErrForbidden},
		{"a domain without the role", whole, "of-apps", []string{"diego-consumer", "diego-domain:apps"}, "diego-log-reader, diego-bbs, diego-operator is wanted", httpapi.ErrForbidden},
		{"of nothing", whole, "never", []string{reader, "diego-domain:apps"}, "never", storage.ErrNotFound},
		{"of a cell that knows no domains", blind, "of-apps", []string{reader, "diego-domain:apps"}, "has no domain", httpapi.ErrForbidden},
		{"an operator", whole, "of-jobs", []string{operator}, "jobs\n", nil},
		{"an operator who also reads logs", whole, "of-jobs", []string{reader, operator, "diego-domain:apps"}, "jobs\n", nil},
		{"an operator at a cell that knows no domains", blind, "of-", []string{operator}, "\n", nil},
	} {
		for _, follow := range []bool{false, true} {
			text, err := read(c.url, c.guid, follow, c.units...)
			if c.err == nil && (err != nil || strings.TrimLeft(text, " ") != c.want) {
				t.Errorf("%s, follow %t: %q, %v", c.name, follow, text, err)
			}
			if c.err != nil && (!errors.Is(err, c.err) || !strings.Contains(err.Error(), c.want) || text != "") {
				t.Errorf("%s, follow %t: %q, %v; want an error with %q", c.name, follow, text, err, c.want)
			}
		}
	}
}

// followed is a cell on which every log is followed for ever.
type followed struct{ idle }

func (followed) Logs(ctx context.Context, _ rep.LogRequest) iter.Seq2[rep.LogChunk, error] {
	return func(yield func(rep.LogChunk, error) bool) {
		if yield(rep.LogChunk{Data: []byte("line\n"), Next: 5}, nil) {
			<-ctx.Done()
		}
	}
}

func TestOneCallerCannotFollowAllLogs(t *testing.T) {
	a := newAuthority(t)
	handler, err := httpapi.NewHandler(httpapi.HandlerOptions{Cell: followed{}, MaxSubscriptions: 5})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = a.server("cell-1", "diego-cell")
	server.Config.ErrorLog = quiet
	server.StartTLS()
	t.Cleanup(server.Close)
	// follow opens a log and holds it until end is called.
	follow := func(name string) (end func(), err error) {
		client, err := httpapi.NewRemoteCell(httpapi.ClientOptions{
			Addresses: []string{server.URL}, CellID: "cell-1", Attempts: 1,
			TLS: a.client(a, time.Hour, name, "diego-log-reader", "diego-domain:apps"),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		next, stop := iter.Pull2(client.Logs(ctx, rep.LogRequest{ContainerGUID: "c", Follow: true}))
		_, err, _ = next()
		return func() { cancel(); stop() }, err
	}
	end := eachMayHaveTwo(t, "log", follow, "another")
	// What ends makes room.
	end()
	for {
		end, err := follow("greedy")
		t.Cleanup(end)
		if err == nil {
			break
		}
		if many := (*problem.TooManyError)(nil); !errors.As(err, &many) {
			t.Fatal(err)
		}
	}
}
