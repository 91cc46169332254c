package main

import (
	"crypto/tls"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/fleetdir"
)

// Who runs an allinone as root lets nobody else of the machine run things as
// root: neither through the control plane nor through a cell.
func TestOnlyItsUserIsServed(t *testing.T) {
	data := t.TempDir()
	p := start(t, "--data", data, "--cells", "1", "--no-sample", "--backend", daemon.ProcessBackend)
	p.wait("API", "https://127.0.0.1:")
	p.wait("Nothing is desired yet")
	p.wait("go run ./examples/diegoctl --data " + data + " lrp create")
	api, err := fleetdir.Find(data)
	if err != nil {
		t.Fatal(err)
	}
	its := operatorTLS(t, api)
	asks := func(o httpapi.ClientOptions) *httpapi.RemoteBBS {
		o.Addresses, o.Attempts = []string{api.URL}, 1
		client, err := httpapi.NewRemoteBBS(o)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	cells, err := asks(httpapi.ClientOptions{TLS: its}).Cells(t.Context())
	if err != nil || len(cells) != 1 {
		t.Fatalf("its user finds %d cells, %v", len(cells), err)
	}
	cell := func(o httpapi.ClientOptions) *httpapi.RemoteCell {
		o.Addresses, o.CellID, o.Attempts = []string{cells[0].Address}, "cell-1", 1
		client, err := httpapi.NewRemoteCell(o)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	if _, err := cell(httpapi.ClientOptions{TLS: its}).Containers(t.Context()); err != nil {
		t.Errorf("its user asks a cell: %v", err)
	}
	stranger := httpapi.ClientOptions{TLS: &tls.Config{RootCAs: its.RootCAs}}
	if _, err := asks(stranger).Cells(t.Context()); !errors.Is(err, httpapi.ErrForbidden) {
		t.Errorf("without a certificate the control plane says %v", err)
	}
	if _, err := cell(stranger).Containers(t.Context()); !errors.Is(err, httpapi.ErrForbidden) {
		t.Errorf("without a certificate the cell says %v", err)
	}
	if os.Geteuid() == 0 { // who else reads what lets in?
		const nobody = 65534
		for _, file := range []string{api.Operator.Key, filepath.Join(data, "diego.db"), filepath.Join(data, "log")} {
			cat := exec.Command("cat", file)
			cat.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			if output, err := cat.CombinedOutput(); err == nil {
				t.Errorf("another user reads %d bytes of %s", len(output), file)
			}
		}
	}
	interrupt(t, p)
	log, err := os.ReadFile(filepath.Join(data, "log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Count(line, " cell=") > 1 {
			t.Errorf("a line of the log names its cell twice: %s", line)
		}
	}
}
