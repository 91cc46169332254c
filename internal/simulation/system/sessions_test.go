package system_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
)

// inhabited is a cell in whose containers people can work. The guid of a container
// is its domain.
type inhabited struct {
	idle
	refused *[]string
}

func (c inhabited) Refused(ctx context.Context, guid, kind string, command []string, why error) {
	*c.refused = append(*c.refused, fmt.Sprint(storage.Caller(ctx), " ", kind, " ", guid, " ", command, " ", errors.Is(why, httpapi.ErrForbidden)))
}

func (inhabited) LogDomain(_ context.Context, guid string) (string, error) { return guid, nil }

func (inhabited) Exec(ctx context.Context, r rep.ExecRequest, s executor.Streams) (executor.Exit, error) {
	_, err := io.WriteString(s.Stdout, storage.Caller(ctx)+" runs "+strings.Join(r.Command, " "))
	return executor.Exit{Status: 3}, err
}

func (inhabited) CopyIn(context.Context, rep.CopyRequest, io.Reader) error  { return nil }
func (inhabited) CopyOut(context.Context, rep.CopyRequest, io.Writer) error { return nil }

func TestTheRoleExecWorksInContainersOfItsDomainsOnly(t *testing.T) {
	a := newAuthority(t)
	serve := func(c rep.API) string {
		handler, err := httpapi.NewHandler(httpapi.HandlerOptions{Cell: c})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(handler)
		server.EnableHTTP2 = true // as a daemon offers; a session takes HTTP/1.1
		server.TLS = a.server("cell-1", "diego-cell")
		server.Config.ErrorLog = quiet
		server.StartTLS()
		t.Cleanup(server.Close)
		return server.URL
	}
	var refused []string
	whole, without := serve(inhabited{refused: &refused}), serve(idle{})
	for _, c := range []struct {
		name, url, guid string
		units           []string
		says            string // what a refusal says
		err             error
	}{
		{"its own", whole, "apps", []string{"diego-exec", "diego-domain:apps"}, "", nil},
		{"an operator", whole, "apps", []string{"diego-operator"}, "", nil},
		{"an operator in no domain", whole, "", []string{"diego-operator"}, "", nil},
		{"another's", whole, "jobs", []string{"diego-exec", "diego-domain:apps"}, `the domain "jobs", and the role exec holds only for the domains of its certificate`, httpapi.ErrForbidden},
		{"of no domain", whole, "", []string{"diego-exec", "diego-domain:apps"}, "has no domain", httpapi.ErrForbidden},
		{"without a domain", whole, "apps", []string{"diego-exec"}, "diego-domain:apps or diego-operator is wanted", httpapi.ErrForbidden},
		{"a log reader", whole, "apps", []string{"diego-log-reader", "diego-domain:apps"}, "diego-exec, diego-operator is wanted", httpapi.ErrForbidden},
		{"a BBS", whole, "apps", []string{"diego-bbs"}, "diego-exec, diego-operator is wanted", httpapi.ErrForbidden},
		{"a consumer", whole, "apps", []string{"diego-consumer", "diego-domain:apps"}, "diego-exec, diego-operator is wanted", httpapi.ErrForbidden},
		{"on a cell without sessions", without, "apps", []string{"diego-operator"}, "it does not implement rep.Sessions", executor.ErrNoSession},
	} {
		client, err := httpapi.NewRemoteCell(httpapi.ClientOptions{
			Addresses: []string{c.url}, CellID: "cell-1", Attempts: 1, TLS: a.client(a, time.Hour, "alice", c.units...),
		})
		if err != nil {
			t.Fatal(err)
		}
		refused = nil
		var out strings.Builder
		end, err := client.Exec(t.Context(), rep.ExecRequest{ContainerGUID: c.guid, Program: executor.Program{Command: []string{"ls", "-l"}}}, executor.Streams{Stdout: &out})
		if c.err == nil && (err != nil || end.Status != 3 || out.String() != "alice runs ls -l") {
			t.Errorf("%s: %v, %v, %q", c.name, end, err, &out)
		}
		for what, err := range map[string]error{
			"exec": err, "a copy in": client.CopyIn(t.Context(), rep.CopyRequest{ContainerGUID: c.guid, Path: "/x"}, strings.NewReader("")),
			"a copy out": client.CopyOut(t.Context(), rep.CopyRequest{ContainerGUID: c.guid, Path: "/x"}, io.Discard),
		} {
			if !errors.Is(err, c.err) || c.err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s: %v; want %v with %q", c.name, what, err, c.err, c.says)
			}
		}
		slices.Sort(refused)
		want := []string{"alice copy_in " + c.guid + " [/x] true", "alice copy_out " + c.guid + " [/x] true", "alice exec " + c.guid + " [ls -l] true"}
		if c.err != httpapi.ErrForbidden {
			want = nil
		}
		if !slices.Equal(refused, want) {
			t.Errorf("%s: the cell hears of %q, want %q", c.name, refused, want)
		}
	}
}
