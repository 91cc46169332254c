//go:build linux && cgo && (amd64 || arm64)

package network

import (
	"errors"
	"testing"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
)

// allowNothing are rules that reach nothing there is.
var allowNothing = []executor.EgressRule{{Protocol: executor.ProtocolAll, Destinations: []string{"192.0.2.1"}}}

// As on a kernel that lets nobody own a table.
func TestWhereNobodyOwnsTablesTheNextBackendRemovesThoseOfTheDead(t *testing.T) {
	testenv.Root(t)
	const alive, dead, next = "000a11fe", "0000dead", "00004e87"
	plain := func(id string) *table {
		made, err := newTable(id, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { made.close() })
		return made
	}
	there := func(id string) bool {
		c, err := nftables.New()
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.ListTable(tablePrefix + id)
		return err == nil
	}
	plain(alive)
	killed := plain(dead)
	unix.Close(killed.claim) // by the kernel
	killed.claim = -1
	if err := killed.close(); err != nil || !there(dead) {
		t.Fatalf("the table went with its socket: %v", err)
	}
	owned, err := newTable("000000e7", true)
	if err != nil {
		t.Fatal(err)
	}
	defer owned.close()
	plain(next)
	if there(dead) {
		t.Error("the table of a dead daemon is there")
	}
	for _, id := range []string{alive, "000000e7", next} {
		if !there(id) {
			t.Errorf("the table %s of a live daemon is gone", id)
		}
	}
	if _, err := claimTable(tablePrefix+alive, 0); err == nil {
		t.Error("a name was claimed twice")
	}
}

func TestOnlyOneLiveNetworkHasAnID(t *testing.T) {
	n := newNetwork(t)
	if made, err := newTable(testID(), true); !errors.Is(err, unix.EPERM) {
		made.close()
		t.Errorf("another has the same table: %v", err)
	}
	var l Link
	if err := n.Make(&l, allowNothing); err != nil {
		t.Errorf("the first one has lost its table: %v", err)
	}
	if err := n.Remove(&l, false); err != nil {
		t.Error(err)
	}
}

func TestATransactionThatFailsDoesNotDisturbTheNext(t *testing.T) {
	n := newNetwork(t)
	for range 3 {
		err := n.firewall.change(func(c *nftables.Conn) error {
			for range 5 {
				c.DelTable(&nftables.Table{Name: "diego-no-such", Family: nftables.TableFamilyIPv4})
			}
			return nil
		})
		if !errors.Is(err, unix.ENOENT) {
			t.Errorf("the error is %v", err)
		}
		l := Link{GUID: "a"}
		err = errors.Join(n.Make(&l, allowNothing), n.Publish(&l, []executor.PortMapping{{ContainerPort: 80, HostPort: 60999}}), n.Remove(&l, true))
		if err != nil {
			t.Error(err)
		}
	}
}
