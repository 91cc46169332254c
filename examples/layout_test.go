package examples_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/testdb"
	"github.com/diegosdk/diego/storage"
)

// host is the address of one of the hosts of the layout.
func host(n int) string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1" // elsewhere there is one loopback address only
	}
	return "127.0.1." + strconv.Itoa(n)
}

// configured starts a daemon with its settings in a file.
func configured(t *testing.T, name string, settings map[string]any, tls []string) *process {
	t.Helper()
	for i := 0; i < len(tls); i += 2 {
		settings[map[string]string{"--tls-cert": "tls_cert", "--tls-key": "tls_key", "--tls-ca": "tls_ca"}[tls[i]]] = tls[i+1]
	}
	text, err := json.MarshalIndent(settings, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), name+".json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, name, "--config", file, "--listen", settings["listen"].(string))
}

// The layout of docs/operations.md: two hosts with a control plane and an
// auctioneer each, cells, and PostgreSQL. One of the two hosts is lost.
func TestThreeHostsSurviveTheLossOfTheFirst(t *testing.T) {
	c := newCertificates(t)
	dsn := testdb.Postgres(t)
	planes, auctioneers := make([]*process, 3), make([]*process, 3)
	common := func(n int) map[string]any {
		return map[string]any{"listen": host(n) + ":0", "store": dsn, "leader_ttl": "2s"}
	}
	var urls []any
	for n := 1; n <= 2; n++ {
		s := common(n)
		// Where the leading auctioneer is, the control planes read in the store.
		s["auctioneers"], s["max_loss"], s["loss_grace"], s["convergence_interval"] = []string{"https://" + host(n) + ":1"}, 1.0, "1ms", "1s"
		planes[n] = configured(t, "bbs", s, c.issue("bbs-"+strconv.Itoa(n), httpapi.BBSRole))
		urls = append(urls, planes[n].URL)
		if n == 1 {
			planes[1].await("leading")
		}
	}
	for n := 1; n <= 2; n++ {
		s := common(n)
		s["bbs"] = urls
		auctioneers[n] = configured(t, "auctioneer", s, c.issue("auctioneer-"+strconv.Itoa(n), httpapi.AuctioneerRole))
		if n == 1 {
			auctioneers[1].await("leading")
		}
	}
	for _, id := range []string{"z1-0", "z2-0"} {
		dir := t.TempDir()
		t.Cleanup(func() { empty(t, daemon.ProcessBackend, dir) })
		configured(t, "rep", map[string]any{
			"listen": host(3) + ":0", "bbs": urls, "cell_id": id, "zone": id[:2], "dir": dir, "backend": "process",
			"presence_ttl": "3s", "sync_interval": "1s", "memory_mb": 4096, "disk_mb": 4096,
		}, c.issue(id, httpapi.CellRole))
	}
	consumer := c.bbs(httpapi.ConsumerRole, planes[2].URL, planes[1].URL)
	f := &fleet{t: t, c: c, consumer: consumer}
	eventually(t, "two cells", func() (bool, error) {
		cells, err := consumer.Cells(within(t))
		return len(cells) == 2, err
	})
	if err := consumer.Desire(within(t), sleeper("web", 4)); err != nil {
		t.Fatal(err)
	}
	f.awaitRunning("web", 4)
	before, err := list(consumer.ResolvedLRPs(within(t), storage.ActualLRPFilter{}))
	if err != nil {
		t.Fatal(err)
	}

	planes[1].kill()
	auctioneers[1].kill()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := consumer.Desire(bbs.WithRequestID(ctx, "after"), sleeper("after", 2)); err != nil {
		t.Fatal(err)
	}
	f.awaitRunning("after", 2)
	auctioneers[2].await("leading")
	now, err := list(consumer.ResolvedLRPs(within(t), storage.ActualLRPFilter{ProcessGUIDs: []string{"web"}}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range before {
		if i >= len(now) || now[i].InstanceGUID != before[i].InstanceGUID {
			t.Errorf("web/%d has changed: %+v", i, now)
		}
	}
}
